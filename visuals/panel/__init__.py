"""The browser's side: one component that follows one run, and its scripts and styles."""
