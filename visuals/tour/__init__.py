"""The tour: seven chapters, their texts, the figures in them and their questions. No Streamlit.

May import ``charts`` and the torch-free packages of ``inference``. Read ``chapters`` (what each
chapter shows and runs), ``facts`` (figures of a run), ``texts`` (every sentence beside
a picture), ``readings`` (how each picture is read), ``questions``.
"""
