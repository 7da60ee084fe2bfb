// The shapes that the modules share: what the page passes, what the server sends, what panels see.

import type { Header } from "./attention_link.js";
import type { FollowEvent } from "./follow.js";
import type { Hover, Tip } from "./tip.js";
import type { Store } from "./store.js";
import type { Strip } from "./strip.js";
import type { UntilLoaded, Vega } from "./vega.js";

// eslint-disable-next-line @typescript-eslint/no-explicit-any -- cells are numbers, words or null
export type Row = Record<string, any>;
export type Table = { mode: "append" | "replace" | "merge"; columns: string[]; rows: unknown[][] };
export type Theme = { text: string; background: string; border: string; font: string };
export type Explanation = { what?: string; read?: string; how?: string; formula?: string; source?: string };
export type Phase = "prefill" | "decode";

/** What the page passes to the component. */
export type PanelData = {
  run_id: string;
  token: string;
  label: string;
  state: string; // of the run, as the page's buttons show it
  entry: string; // the module that the loader imports first
  scripts: string; // where the modules of this version are, below the server's address
  vega: string; // where Vega is, below the server's address
  specs: Record<string, Row>;
  explanations: Record<string, Explanation>;
  panels?: string[] | null; // the panels that are shown beside the header; none for all
  stage?: StageData | null; // on pages that present, or follow a presenter
  frame?: Frame; // set where the page feeds the panel instead of a WebSocket
};

export type Idea = { name: string; title: string; prefill: string; decode: string };

/** What the page passes for presenter mode. */
export type StageData = {
  role: "presenter" | "viewer";
  address: string; // of the route, below the server's
  ideas: Idea[]; // of the panels, in the order of their numbers
  on: boolean; // as the page's address has it, or as the page knows of a presenter
  panels: string[]; // that the address names
  says: string; // what is wrong with the address
  link: { url: string; note: string; code: string[] } | null; // by which others follow
};

/** What all who follow a presenter are shown. */
export type Presentation = {
  presents: true;
  holds: boolean; // this page is the presenter's
  run: { run_id: string; token: string };
  panels: string[];
  dark: boolean;
  pointer: [string, number, number] | null; // panel, share of its width, share of its height
};
export type PresentMessage = Presentation | { presents: false } | { says: string };

/** What Streamlit calls a component's script with. */
export type Component = {
  data: PanelData;
  parentElement: HTMLElement | ShadowRoot;
  setStateValue(name: string, value: unknown): void;
};

/** What the engine does about its model. */
export type EngineStatus = { stage: string; ratio: number | null; error: string };

/** How it stands with a run's roofs. */
export type RoofsStanding = { version: string; words: string; is_offered: boolean; is_pending: boolean };

/** What Streamlit calls the loading line's script with. */
export type LoadingComponent = {
  data: { entry: string; scripts: string; status_address: string; status: EngineStatus };
  parentElement: HTMLElement | ShadowRoot;
};

/** Which server it is, and what happened to its engine that nobody asked for. */
export type ServerNews = { server: string; engine: string };

/** What Streamlit calls the script of the line about the server with. */
export type ServerComponent = {
  data: { entry: string; scripts: string; server_address: string; drawn: ServerNews };
  parentElement: HTMLElement | ShadowRoot;
};

/** What was checked of the model held, as the server says it. */
export type BadgeStatus = { model: string; state: string; words: string; is_changing: boolean };

/** What Streamlit calls the badge's script with. */
export type BadgeComponent = {
  data: { entry: string; scripts: string; status_address: string; page_address: string; status: BadgeStatus };
  parentElement: HTMLElement | ShadowRoot;
};

/** A term of the glossary, and where one stands in a text. */
export type Term = { key: string; title: string; sentence: string; chapter: string; forms: string[] };
export type TermsFile = { pattern: string; terms: Term[]; chapters: Record<string, string> };
export type FoundTerm = { key: string; from: number; to: number };
/** A term where it first stands on the page. */
export type Mark = FoundTerm & { node: Text; order: number };

/** What Streamlit calls the script of the terms with. */
export type TermsComponent = {
  data: { entry: string; scripts: string; terms: string; tour: string };
  parentElement: HTMLElement | ShadowRoot;
};

export type RunStatus = {
  state: string;
  final: boolean;
  message: string;
  ended?: string;
  stage: string | null;
  stage_ratio: number | null;
  queue_position: number | null;
  held?: boolean; // its first step waits until this page has been drawn
  warning?: string; // what the self-check of its model found to differ, and what is to be known of the prompts' text
};

/** Tell the server that a frame was drawn, and for how long that kept the main thread. */
export type Acknowledge = (tookMs: number) => void;

export type LayerKind = {
  window: number | null;
  chunked: boolean;
  attends: boolean;
  short?: string;
  label?: string;
};

export type AttentionModel = {
  kinds: LayerKind[];
  of_layer: number[];
  default: number;
  heads: number;
  kv_heads: number;
};

export type Matrix = { name: string; label: string };
export type Plan = { policy: string; slots: number; requests: number; columns: string[] };

export type Model = {
  id: string;
  dtype: string;
  device: string;
  attention: AttentionModel;
  captured: boolean; // the run's file keeps attention weights
  matrices: Matrix[];
  batch: Plan | null;
  roofs: string; // differs wherever the measured roofs do; empty without any
  first_fed: [number, number][];
  requests: { id: string; prompt_tokens: number; max_new_tokens: number }[];
};

export type Step = {
  index: number;
  phase: Phase;
  decode: number;
  decode_most: number;
  T: number;
  L: number;
  stored: number;
  known: number;
};

export type Figure = {
  key: string;
  label: string;
  value: string;
  unit: string;
  note: string;
  steps: number;
  source: string;
  explanation: string;
};

export type ReuseItem = { tokens: number; formula: string; bytes: string; reuse: string };
export type Reading = { name: string; colour: string; width: number; text: string };
export type Account = { verdict: string; reason: string; lines: [string, string, string][] };
/** Request, what it did, tokens fed, tokens stored, whether it is done, padding behind it. */
export type BatchRow = [number, string, number, number, boolean, number];
export type BatchStep = {
  phase: Phase;
  T: number;
  columns: number;
  queued: number;
  rows: BatchRow[];
  strips: [number, number, number][];
};
export type SharedBytes = { weights_mib: number; own: [number, number][]; flops_per_byte: string };
export type BatchPart = {
  step: BatchStep;
  shared: SharedBytes;
  rates: { each: string; all: string };
  latency: string[][];
};
/** Id, text, probability before and after sampling, whether it was chosen. */
export type NextRow = [number, string, number | null, number | null, boolean];
export type NextToken = { step: number; how: string; caption: string; rows: NextRow[] };
export type PromptItem = [number, number, string, string, string];
export type Candidate = [number, string, number | null];
export type OutputItem = [
  number, number, number, string, string, string, number | null, string | null, Candidate[],
];
export type TextPart = { row: number; add: string; end: string };
export type MaskWords = { caption: string; description: string };

/** One message of the live route. */
export type Frame = {
  run: RunStatus;
  from: number;
  to: number;
  total: number;
  model?: Model;
  step?: Step | null;
  rows?: Record<string, Table>;
  prompt?: PromptItem[];
  outputs?: OutputItem[];
  text?: TextPart[];
  mask?: [Phase, number, number][];
  masks?: [Phase, [number, number, number][]][];
  mask_words?: MaskWords[];
  capture?: string; // what capturing attention costs, in words
  captions?: { latency: string; kv: string; weights: string };
  roofline?: { captions: Record<string, string>; alarms: Record<string, string> };
  account?: Account;
  next?: NextToken | null;
  figures?: Figure[];
  weights?: Partial<Record<Phase, ReuseItem>>[];
  readings?: Reading[];
  unavailable?: string[] | null;
  batch?: BatchPart;
};

export type Token = {
  id: number;
  hex: string;
  text: string;
  kind: string;
  isOutput: boolean;
  p?: number | null;
  step?: number;
  finish?: string | null;
  candidates?: Candidate[];
};

export type TokenRow = { strip: Strip; text: HTMLElement; done: Text; end: Text };
export type Position = { row: number; position: number };

/** What brings the frames of a run. */
export interface FrameLink {
  isFed: boolean; // by the page that the panel stands on
  on(event: FollowEvent): void;
}
export type FrameCalls = {
  address(): URL;
  receive(frame: Frame, acknowledge: Acknowledge): void;
  say(transport: string): void;
};

/** What brings its attention weights. */
export interface WeightLink {
  open(runId: string, token: string, role: string): void;
  ask(request: object): void;
  close(): void;
}
export type WeightCalls = (header: Header, body: ArrayBuffer) => void;

/** Where a panel's run comes from. */
export interface Origin {
  hasServer: boolean; // which can be asked for more
  frames(calls: FrameCalls): FrameLink;
  weights(take: WeightCalls): WeightLink;
}

/** What the live panel is opened with; its run comes from the server unless it has another origin. */
export type PanelHow = { base: URL; untilLoaded: UntilLoaded; origin?: Origin };

/** What all panels share. */
export type Context = {
  data: PanelData;
  base: URL;
  origin: Origin;
  store: Store;
  hover: Hover;
  tip: Tip;
  tokens: TokenRow[];
  theme: Theme;
  vega: Vega;
  send(name: string, value: unknown): void;
  again(): void; // draw the run anew from its beginning
  failed(panel: Panel, error: unknown): void;
  turn: Promise<unknown>; // charts are drawn one after another, so that each one's time is known
  afterwards(call: () => void): void; // once all panels have changed what they show
};

/** One panel: made with its parent element and the context, then given every frame. */
export interface Panel {
  box: HTMLElement;
  reset(): void;
  update(frame: Frame): void | Promise<unknown>;
  retheme(): void | Promise<unknown>;
  connected?(hasSocket: boolean): void;
  begins?(frame: Frame): void; // a held run is about to begin; until its first token no frame comes
  close?(): void;
}
export type PanelClass = new (parent: HTMLElement, ctx: Context) => Panel;

export type Choice = { layer: number; head: number | null; all: boolean; row: number };
export type AttentionState = {
  choice: Choice | null; // of the weights that are drawn
  notice: string;
  note: string; // how they were captured, or that they are on their way
  reason: string;
  over: boolean; // no step will follow
  reset?: boolean;
};

/** A block of weights as its header says it. */
export type BlockHeader = {
  heads: (number | null)[];
  q0: number;
  qn: number;
  qb: number;
  k0: number;
  kn: number;
  kb: number;
  shape: [number, number, number];
  rest: boolean;
};
export type WeightBlock = Omit<BlockHeader, "rest"> & {
  planes: number;
  rows: number;
  width: number;
  data: Uint16Array;
  rest: Uint16Array | null;
};
export type ExactRow = {
  query: number;
  head: number | null;
  k0: number;
  kb: number;
  weights: Float32Array;
};

export type Square = {
  cells: number;
  left: number;
  top: number;
  side: number;
  cell: number;
  isLabelled: boolean;
};
export type HeadSquare = { x: number; y: number; side: number };
export type HeadLayout = {
  heads: HeadSquare[];
  groups: { x: number; y: number; width: number; height: number }[];
};
/** What was drawn where: one square, or one a head. */
export type Layout = { cells: number; square: Square | null; heads: HeadSquare[] | null };
export type Cell = { plane: number; query: number; key: number };
