// Generated from docs/api.json by scripts/generate-types.mjs. Do not edit.

/** A request to add a manual link. It replaces the note of an existing link. */
export interface AddLinkRequest {
  /** The reason. A blank one is as none. */
  note?: string | null;
  /** The relation. */
  relation: string;
  /** The source artifact. */
  source: CoreHash;
  /** The target artifact. */
  target: CoreHash;
}

/** What was done with a document that was added. */
export type AddedDocument = ExaminedDocument & {
  /** What was done. */
  outcome: DocumentOutcome;
  /** Whether the time at which it was seen was recorded, if it was stored before and was not added again. */
  recorded: boolean;
};

/** The result of a change to an annotation. */
export interface AnnotateAnswer {
  /** Whether the vault changed; false if it already was as requested. */
  changed: boolean;
}

/** The answers to prompts. */
export interface AnswersAnswer {
  /** Whether there are more artifacts than were read. */
  is_more: boolean;
  /** The prompts, by the time of their first answer. */
  prompts: Array<PromptAnswers>;
  /** Number of artifacts that were read. */
  read: number;
  /** Number of prompts with several answers that are all the same. They are listed only on request, or if one was requested. */
  unanimous: number;
}

/** A request for the answers to a prompt, or for the prompts of a set of artifacts that were answered differently. */
export interface AnswersRequest {
  /** The only artifacts that can match; any if empty. */
  artifacts?: Array<CoreHash>;
  /** The artifacts whose answers are compared. */
  filter?: ArtifactFilter;
  /** Maximum number of artifacts that are read, last seen first; unlimited if there is none. */
  limit?: number | null;
  /** Maximum number of characters of each text; unlimited if there is none. */
  max_text?: number | null;
  /** The prompt; every prompt with different answers if there is none. */
  prompt?: Digest | null;
  /**
   * Whether every prompt with several answers is returned, also if they are all the same: the last texts of requests, and
   * requests as a whole.
   */
  repeated?: boolean;
}

/** Data of an artifact in a list. */
export interface ArtifactDetails {
  /** Its attributes, sorted by name and value; only on request. */
  attributes?: Array<AttributeSummary> | null;
  /** Its captures in the order in which they were added; only on request. */
  captures?: Array<CaptureSummary> | null;
  /** The latest creation time that it states. */
  created_at?: Timestamp | null;
  /** Its labels, by key; only on request. */
  labels?: Record<string, string> | null;
  /** Its note; only on request, and if it has one. */
  note?: string | null;
  /** Whether it is pinned; only on request. */
  pinned?: boolean | null;
  /** The id of the run that it records, if it states one. */
  run_id?: string | null;
  /** Its tags, by name; only on request. */
  tags?: Array<string> | null;
}

/** A filter of artifacts. Everything given must hold. */
export interface ArtifactFilter {
  /** The conditions. */
  conditions?: Array<FindCondition>;
  /** The first digits of the core hash; any if there are none. */
  digits?: string | null;
  /** The ids of the kinds; any if empty. */
  kinds?: Array<string>;
  /** The period of one of the times of an artifact. Artifacts without that time do not match. */
  period?: FindPeriod | null;
}

/** A match of a condition. */
export type ArtifactMatch = PlaceSummary & {
  /** The digest. */
  digest: Digest;
  /** The role of the digest. */
  role: string;
} | {
  /** The hash. */
  hash: Digest;
} | {
  /** The name. */
  name: string;
  /** The value. */
  value: string;
} | {
  /** The capture, if it is signed. */
  capture_hash?: CaptureHash | null;
  /** The key id that the capture states. */
  key_id?: string | null;
  /** The state of the signature. */
  signature: SignatureName;
} | {
  /** The full text. */
  note: string;
} | {
  /** The tag. */
  tag: string;
} | {
  /** True. */
  pinned: boolean;
} | {
  /** The key. */
  key: string;
  /** The value. */
  value: string;
};

/** An artifact by its core hash and kind. */
export interface ArtifactName {
  /** Its core hash. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
}

/** The pin of an artifact. */
export interface ArtifactPin {
  /** The reason, if one was given. */
  note?: string | null;
  /** The time at which it was pinned. */
  pinned_at: Timestamp;
}

/** A selection of artifacts to check. */
export interface ArtifactSample {
  /** Percentage of the artifacts. */
  percent: number;
  /** The seed, which determines the selected artifacts of a vault. */
  seed?: number;
}

/** An artifact. */
export interface ArtifactSummary {
  /** The time at which its first capture was added. */
  added_at: Timestamp;
  /** Its core hash. */
  core_hash: CoreHash;
  /** The name of its kind. */
  kind: string;
  /** The time at which one of its captures was last added or seen again. */
  seen_at: Timestamp;
}

/** The names of attributes. */
export interface AttributeNamesAnswer {
  /** The names, sorted. */
  names: Array<string>;
}

/** A request for the names of the attributes that artifacts have. */
export type AttributeNamesRequest = Record<string, unknown>;

/** A named value that is derived from an artifact. */
export interface AttributeSummary {
  /** The name. */
  name: string;
  /** The value. */
  value: string;
}

/** The values of an attribute. */
export interface AttributeValuesAnswer {
  /** The values, sorted. */
  values: Array<string>;
}

/** A request for the values of an attribute. */
export interface AttributeValuesRequest {
  /** Maximum number of values; unlimited if there is none. */
  limit?: number | null;
  /** The name of the attribute. */
  name: string;
  /** The beginning of the values; all values if it is empty. */
  prefix?: string;
}

/** The audits of runs against a contract. */
export interface AuditAnswer {
  /** The contract. */
  contract: CoreHash;
  /** Number of effects that it declares. */
  effects: number;
  /** Where the next page begins; `None` if this is the last one. */
  next?: CoreHash | null;
  /**
   * The audit of each run, the latest first: by the creation time that it states, or by its first addition if it states
   * none.
   */
  runs: Array<RunAudit>;
}

/** A violation of a contract, or something that could not be checked. */
export type AuditFinding = Violation & {
  /** The contract. */
  contract: CoreHash;
  /** The run. */
  run: CoreHash;
  /** The id that the run states, if it states one. */
  run_id?: string | null;
};

/** A request for an audit. */
export interface AuditRequest {
  /** The last run of the previous page; the first page if there is none. */
  after?: CoreHash | null;
  /** The contract. */
  contract: CoreHash;
  /** Maximum number of runs; unlimited if there is none. */
  limit?: number | null;
  /** The run; every run that the contract governs if there is none. */
  run?: CoreHash | null;
}

/**
 * A completed backup. It passed the integrity check of the database and the hash check of the sampled blobs, and its
 * journal ends as the vault's does.
 */
export type BackupAnswer = PathName & {
  /** Number of artifacts. */
  artifacts: number;
  /** Number of blobs. */
  blobs: number;
  /** Number of blobs that were read back and hashed again. */
  blobs_checked: number;
  /** Its size in bytes. */
  bytes: number;
  /** Number of captures. */
  captures: number;
  /**
   * Number of breaks in the journal's chain and of differences between the catalog and the journal. The copy is
   * exact, so the vault has the same.
   */
  findings: number;
  /** The first 10 of them. */
  first_findings: Array<FindingSummary>;
  /** Number of journal entries. */
  journal_entries: number;
  /** The digest of the whole journal. */
  journal_head: Digest;
};

/**
 * A request to copy the current state of a vault to a file, and to check the copy. Others can read and write during
 * the backup.
 */
export interface BackupRequest {
  /** Whether an existing file is replaced. */
  force?: boolean;
  /** The path of the file, on the machine of the vault. */
  path: string;
  /** Percentage of the blobs that are read back and hashed again; everything else is always checked. */
  sample?: number;
}

/** The format of a body. */
export type BodyFormat = "text" | "json" | "binary" | "digest";

/** The role of a body in its step. */
export type BodyRole = "context" | "prompt" | "response" | "arguments" | "result" | "error" | "state" | "details" | "content";

/** Where the text of a body comes from. */
export type BodySource = {
  type: "recorded";
} | {
  /** The other artifact. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The location in it, if it is not all of it. */
  place?: PlaceSummary | null;
  type: "resolved";
} | {
  type: "not-recorded";
};

/** A search index that was built. */
export interface BuildSearchIndexAnswer {
  /** Number of bytes that the index takes in the vault, which depends on the engine. */
  bytes: number;
  /** Number of captures. */
  captures: number;
  /** The artifacts of captures with damaged bytes, which are in the index without passages. */
  damaged: Array<CoreHash>;
  /** Number of damaged captures. */
  damaged_captures: number;
}

/**
 * A request to build the search index, or to rebuild it. Others can use the vault during this. If it is interrupted, the
 * next search completes the index.
 */
export type BuildSearchIndexRequest = Record<string, unknown>;

/** A type of calendar period, in UTC. */
export type CalendarPeriod = "hour" | "day" | "week" | "month" | "year";

/** The hash of a capture: one exact byte form of an artifact. */
export type CaptureHash = string;

/** A capture of an artifact. */
export interface CaptureSummary {
  /** The time at which it was added. */
  added_at: Timestamp;
  /** Its hash. */
  capture_hash: CaptureHash;
  /** The key id that it states. */
  key_id?: string | null;
  /** Whether it is the preferred capture of the artifact. */
  preferred: boolean;
  /** The time at which it was last added or seen again. */
  seen_at: Timestamp;
  /** The state of its signature. */
  signature: SignatureName;
  /** Its size in bytes. */
  size: number;
  /** The path that it was read from when it was first added, if that was recorded. */
  source_path?: string | null;
  /** The warnings that were reported at its admission. */
  violations: Array<Violation>;
}

/** The captures of an artifact. */
export interface CapturesAnswer {
  /** The captures in the order in which they were added. */
  captures: Array<CaptureSummary>;
  /** Number of all captures of the artifact. */
  count: number;
  /** Where the next page begins; `None` if this is the last one. */
  next?: CaptureHash | null;
}

/** A request for the captures of an artifact. */
export interface CapturesRequest {
  /** The last capture of the previous page; the first page if there is none. */
  after?: CaptureHash | null;
  /** The artifact. */
  artifact: CoreHash;
  /** Maximum number of captures; unlimited if there is none. */
  limit?: number | null;
}

/** The result of comparing a catalog with its journal: the number of rows that agree, and the differences. */
export type CatalogCheck = CatalogCounts & {
  /** Defects of the journal, and differences between it and the catalog. */
  findings: Array<FindingSummary>;
};

/** Counts of the catalog rows that agree with the journal. */
export interface CatalogCounts {
  /** Artifacts. */
  artifacts: number;
  /** Captures. */
  captures: number;
  /** Labels. */
  labels: number;
  /** Manual links. */
  links: number;
  /** Notes. */
  notes: number;
  /** Pins. */
  pins: number;
  /** Number of captures with a signature. */
  signatures: number;
  /** Tags. */
  tags: number;
  /** Tombstones. */
  tombstones: number;
}

/** The type of a change. */
export type ChangeType = "changed" | "moved" | "removed" | "inserted" | "ephemeral" | "spelling";

/** A difference between two values. */
export interface ChangedValue {
  /** Whether it varies between identical runs. */
  ephemeral: boolean;
  /** The new value, unless it was removed. */
  new?: JsonValue;
  /** The old value, unless it was added. */
  old?: JsonValue;
  /** The location as a JSON Pointer into the part; elements of arrays have their old index, inserted ones their new index. */
  pointer: string;
  /** Whether both have the same canonical form. */
  spelling: boolean;
}

/** The result of checking a journal. */
export interface CheckJournalAnswer {
  /** The comparison with the catalog, if it was requested. */
  catalog?: CatalogCheck | null;
  /** A description of the first defect of the chain. */
  defect?: string | null;
  /** The number of the entry with that defect. */
  defect_entry?: number | null;
  /** The entry after which the recorded chain value was the head, whichever number was recorded with it. */
  found?: number | null;
  /** The last entry, as stored. */
  head: JournalHead;
  /**
   * Whether all entries chain, the recorded chain value is a former head, and the catalog matches the journal, as far
   * as that was requested.
   */
  ok: boolean;
  /**
   * The entry after which the recorded chain value was the head; 0 is before the first. `None` if it never was, or
   * not after the recorded entry.
   */
  since?: number | null;
}

/** A request to recompute the chain of the journal from the first entry to the last. Reads no stored bytes. */
export interface CheckJournalRequest {
  /**
   * Whether to also compare the artifacts, captures, tags, notes, pins, manual links, tombstones and signatures in the
   * catalog with the journal, in both directions.
   */
  catalog?: boolean;
  /**
   * A chain value that was recorded earlier as the head of the journal: whether it is the one of an entry, and so no
   * entry up to that one was changed since.
   */
  since?: Digest | null;
  /** The number of the entry that was recorded with it, if one was. */
  since_seq?: number | null;
}

/** A document that was examined and not added. */
export type CheckedDocument = ExaminedDocument & {
  /** Whether it would be admitted. */
  ok: boolean;
};

/** The signature of a capture. */
export interface CheckedSignature {
  /**
   * The key id that the document states; `None` if there is none, or a very long one. The signature does not cover the
   * id: it is reliable only if the signature is verified.
   */
  key_id?: string | null;
  /** The result of checking it. */
  signature?: SignatureName;
}

/** A stored artifact to compare. */
export interface ComparedArtifact {
  /**
   * The capture; if there is none, the preferred one, and those of the other parts of the run of which the artifact is the
   * first part.
   */
  capture_hash?: CaptureHash | null;
  /** The artifact. */
  core_hash: CoreHash;
}

/** A compared artifact. */
export interface ComparedSide {
  /** The capture; `None` if it is not stored. */
  capture_hash?: CaptureHash | null;
  /** Its core hash. */
  core_hash: CoreHash;
  /** Its name: as given, or its core hash. */
  name: string;
  /** The bytes of the name, as hex digits, if it is a path that is not UTF-8. */
  name_bytes?: string | null;
  /** The artifacts that were compared, in their order, if the run of which this one is the first part is stored as several. */
  parts?: Array<CoreHash>;
}

/** A conversation. */
export interface Conversation {
  /** The calls in their order. */
  calls: Array<ConversationCall>;
  /** The threads, in the order of their first calls. */
  threads: Array<ConversationThread>;
}

/** A call of a model in a conversation. */
export interface ConversationCall {
  /** The id of the answer, if the API or the program that records it has one. */
  answer_id?: string | null;
  /** The answers: one, or several if several were asked for. */
  answers: Array<ConversationMessage>;
  /** The time until all of the answer had arrived, in milliseconds, if recorded. */
  duration_ms?: number | null;
  /** The name of the request in the API of the provider. */
  endpoint: string;
  /** Why there is no answer, or only its beginning. */
  error?: string | null;
  /** Why the answer ended, in the word of the API. */
  finish_reason?: string | null;
  /** The other messages of the request, without the results of calls of tools that the thread has. */
  messages: Array<ConversationMessage>;
  /** The model that was asked. */
  model: string;
  /** The parameters of the request, as JSON, by name. */
  parameters: Record<string, string>;
  /** The digest by which other artifacts with the same prompt are found, if it is recorded. */
  prompt_hash?: Digest | null;
  /** The provider of the model. */
  provider: string;
  /** Number of messages of the request that are those of the earlier calls of its thread. */
  repeated: number;
  /** When it was asked, if recorded. */
  requested_at?: Timestamp | null;
  /** The number of the step with the request in the artifact, from 0. */
  step: number;
  /** The number of its thread, from 0. */
  thread: number;
  /** Number of tokens in the request, if stated. */
  tokens_in?: number | null;
  /** Number of tokens in the answer, if stated. */
  tokens_out?: number | null;
  /** The names of the tools that were offered. */
  tools: Array<string>;
}

/** A message of a conversation. */
export interface ConversationMessage {
  /** What it consists of, in reading order. */
  parts: Array<MessagePart>;
  /** Who says it. */
  role: MessageRole;
}

/** Calls that continue each other. */
export interface ConversationThread {
  /** Number of its calls. */
  calls: number;
  /** The thread with which it has the first messages in common, more than instructions. */
  parent?: number | null;
}

/** The number of tags, notes, labels, pins and manual links by outcome. */
export interface CopiedAnnotations {
  /** Those that were not set, because the other vault has another one in their place, or not the artifact. */
  kept: number;
  /** Those that the other vault already had. */
  present: number;
  /** Those that were set. */
  set: number;
}

/** What was copied, now or before an interruption that this copy continued. */
export type CopyAnswer = PathName & {
  /** The annotations that were merged; none in a verbatim copy, which has all of them. */
  annotations: CopiedAnnotations;
  /** Their size in bytes. */
  bytes: number;
  /** Number of captures that were copied now. */
  captures: number;
  /** The first 10 of them. */
  first_rejected: Array<RejectedCapture>;
  /** Whether all of it was copied. If not, the copy was interrupted, and copying again continues it. */
  is_complete: boolean;
  /** Number of entries of the other vault's journal. */
  journal_entries: number;
  /** The digest of that journal. */
  journal_head: Digest;
  /** How it was copied. */
  mode: CopyMode;
  /** Number of captures that the other vault already had. */
  present: number;
  /** Number of captures that were not copied, because they break rules or were removed from the other vault. */
  rejected: number;
};

/** How a vault was copied. */
export type CopyMode = "verbatim" | "merged";

/** The original of a copy beside the vault. */
export type CopyOrigin = "log";

/** A request to copy everything in a vault into another one. */
export interface CopyRequest {
  /** The name that the other vault's journal records for entries that are made there. */
  actor?: string | null;
  /** Whether artifacts that were removed from the other vault before are added again. */
  allow_removed?: boolean;
  /** The path or URL of the other vault, which is created if it does not exist. */
  to: string;
  /**
   * Whether the paths that captures were read from are left out where captures are added. An empty vault adopts the
   * journal as it is, with the paths that it records.
   */
  without_source_paths?: boolean;
}

/** The core hash of an artifact. */
export type CoreHash = string;

/** Number of parts by type of change. */
export interface Counts {
  /** In both, with different content. */
  changed: number;
  /** Only in the second, unless entirely ephemeral. */
  inserted: number;
  /** In both, in different positions. */
  moved: number;
  /** Only in the first, unless entirely ephemeral. */
  removed: number;
  /** In both and equal, or with only ephemeral differences. */
  same: number;
}

/** An artifact with a time. */
export type DatedArtifact = ArtifactSummary & {
  /** The time. */
  at: Timestamp;
};

/** The content of one day. */
export interface Day {
  /** Number of artifacts. */
  artifacts: number;
  /** The size of the captures in bytes. */
  bytes: number;
  /**
   * Number of captures. Of times that artifacts state, those of these artifacts; otherwise, a capture belongs to the
   * day on which it was itself added or last seen.
   */
  captures: number;
  /** The day, in UTC. */
  date: string;
}

/** The number of artifacts on a day. */
export interface DayCount {
  /** Number of artifacts. */
  artifacts: number;
  /** The day. */
  date: string;
}

/** The number of artifacts on each day. */
export interface DaysAnswer {
  /** The days, oldest first, without gaps. */
  days: Array<DayCount>;
}

/** A request for the number of artifacts on each of some days. */
export interface DaysRequest {
  /** The time that determines the day of an artifact, in UTC. */
  by?: TimeBasis;
  /** Number of days; at most 366 are counted. */
  days: number;
  /** What the artifacts must match. Its period is not used. */
  filter?: ArtifactFilter;
  /** The last day. */
  last: string;
}

/** Data of an artifact that a list contains on request. */
export type Detail = "attributes" | "captures" | "annotations";

/** The differences between two artifacts. */
export interface DiffAnswer {
  /** The changes in the order of the artifacts, if they were requested. */
  changes?: Array<PartChange> | null;
  /** Number of parts by type of change. */
  counts: Counts;
  /** Whether there are differences. */
  different: boolean;
  /** The first change that is not ephemeral. */
  first_divergence?: PartChange | null;
  /** The id of the kind of both. */
  kind: string;
  /** The end of this page; none if it is the last one. */
  next?: number | null;
  /** The first artifact. */
  one: ComparedSide;
  /** The second artifact. */
  other: ComparedSide;
  /** Whether the core hashes are equal. */
  same_core: boolean;
}

/** Which changes an answer contains. */
export type DiffExtent = "all" | "first" | "counts";

/** A request for the differences between two stored artifacts of one kind. */
export interface DiffRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: number | null;
  /** Whether to include values that vary between identical runs, and values with the same canonical form. */
  all?: boolean;
  /** Which changes to return. */
  extent?: DiffExtent;
  /** Values that are not compared: JSON Pointers into steps and other parts, in which `*` is any name or index. */
  ignore?: Array<string>;
  /** Maximum number of changes; unlimited if there is none. */
  limit?: number | null;
  /** The first artifact. */
  one: ComparedArtifact;
  /** The second artifact. */
  other: ComparedArtifact;
}

/** A SHA-256 digest. */
export type Digest = string;

/** The first digits of a SHA-256 digest, at least 6. */
export type DigestPrefix = string;

/** Mentioned digests. */
export interface DigestsAnswer {
  /** The digests, sorted; at most 20. A complete digest is returned whether it is mentioned or not. */
  digests: Array<Digest>;
  /**
   * The last removal of an artifact or a capture whose hash begins with the digits; `None` if something in the vault has
   * such a hash.
   */
  removed?: RemovedHash | null;
}

/** A request for the mentioned digests that begin with given digits. */
export interface DigestsRequest {
  /** The group of the role in which they are mentioned, such as `prompt`; any if there is none. */
  group?: string | null;
  /** The first digits, or all. */
  prefix: DigestPrefix;
}

/** The direction of an edge, seen from an artifact. */
export type Direction = "out" | "in";

/** An answer, with every time at which it was given. What several recordings of one run state was given once. */
export interface DistinctAnswer {
  /** Number of times that it was given. */
  count: number;
  /** Whether the call failed, so that there was no response. */
  failed: boolean;
  /** Where and when it was given, by time. */
  given: Array<GivenAnswer>;
  /** The text, or the message of the error. */
  response: ViewBody;
}

/** What was done with a document. */
export type DocumentOutcome = "added" | "capture" | "present" | "restored" | "rejected" | "skipped";

/** The result of removing the search index. */
export interface DropSearchIndexAnswer {
  /** Whether there was an index. */
  changed: boolean;
}

/** A request to remove the search index. [`ReclaimRequest`](crate::vault::maintenance::ReclaimRequest) frees the space. */
export type DropSearchIndexRequest = Record<string, unknown>;

/** The audit of an effect. */
export interface EffectAudit {
  /** The reason. */
  because: string;
  /** The contract. */
  contract: CoreHash;
  /** The name of the effect. */
  effect: string;
  /** The type of the evidence that it declares. */
  evidence?: string | null;
  /** The idempotency that it declares. */
  idempotency?: string | null;
  /** The mode of that reference. */
  mode?: string | null;
  /** The location of the deciding value, in words; `None` if the effect is pending. */
  place?: string | null;
  /** The run. */
  run: CoreHash;
  /** The id that the run states, if it states one. */
  run_id?: string | null;
  /** The IO reference that it targets. */
  target: string;
  /** Whether it is not idempotent and states neither a nonce nor a reason. */
  unsafe_to_retry: boolean;
  /** The deciding value, unless it is a list or an object. */
  value?: JsonValue;
  /** The verdict. */
  verdict: Verdict;
}

/** The size of what an engine stores, and of its indexes. */
export interface EngineStatistics {
  /** Number of dictionaries. */
  dictionaries: number;
  /** Their size in bytes. */
  dictionary_bytes: number;
  /** Number of blobs that are stored as deltas. */
  differences: number;
  /** The size of the vault's file in bytes. */
  file_bytes: number;
  /** The free part of that, in bytes. */
  free_bytes: number;
  /** Number of mentioned digests in the index; the same digest in two captures counts twice. */
  mentions: number;
  /** The size of the full-text search index in bytes; `None` if there is none. */
  search_bytes?: number | null;
  /** The size of the blobs in bytes after compression, with the digests that were stripped from them and without the dictionaries. */
  stored_bytes: number;
}

/** What remains of removed artifacts in the vault's files and beside them. */
export interface ErasureSummary {
  /** Whether no byte of them is left in the vault's files, except bytes that other artifacts contain too. */
  complete: boolean;
  /** Copies beside the vault that contain, or may contain, their bytes. */
  copies: Array<VaultCopy>;
  /**
   * The parts of the vault's files that contain, or may contain, their bytes until space is reclaimed; empty if the
   * erasure is complete.
   */
  remnants: Array<RemnantSummary>;
}

/** A document that was examined, with what was found out about it and what was done with it. */
export interface ExaminedDocument {
  /** The files beside it that it refers to and that are stored with it. */
  attachments: Array<CoreHash>;
  /** The artifact that the document continues, if it is the rest of one: the stored artifact consists of both. */
  continues?: CoreHash | null;
  /** The artifact, unless it was rejected. It is also stated if it was rejected because it was removed before. */
  core_hash?: CoreHash | null;
  /** The key id that it states. */
  key_id?: string | null;
  /** The id of its kind, if it was recognized. */
  kind?: string | null;
  /** The name of the document. */
  path: string;
  /** The bytes of the name, as hex digits, if it is a path that is not UTF-8. */
  path_bytes?: string | null;
  /** What looks like a secret in it, if that was looked for; missing if nothing does. */
  secrets?: Array<SecretMatch>;
  /** The result of checking its signature, if it is signed: `verified` or `unchecked`. */
  signature?: string | null;
  /** Its violations, including warnings. */
  violations: Array<Violation>;
  /** Number of further violations. */
  violations_omitted: number;
}

/** An artifact that extends another one of its kind. */
export interface ExtensionSummary {
  /** Its core hash. */
  core_hash: CoreHash;
  /** Its length, if it is known. */
  length?: number | null;
  /** The unit of the length, such as `record`. */
  unit: string;
}

/** The number of runs that match a filter. */
export interface FacetsAnswer {
  /** The counts of the runs; missing if there are more recordings than the request permits. */
  counts?: RunCounts | null;
  /** Number of recordings: a run can have several. */
  recordings: number;
}

/**
 * A request for the number of runs that match a filter, and for the most frequent values of some attributes and of labels
 * among them. The recordings of a row of a list are one run.
 */
export interface FacetsRequest {
  /** The names of the attributes whose values are counted. */
  attributes?: Array<string>;
  /** What the recordings must match. If it names no kinds, they are all that record what an agent or a model did. */
  filter?: ArtifactFilter;
  /** Maximum number of values of each attribute, and of labels; unlimited if there is none. */
  limit?: number | null;
  /**
   * If more recordings match, their runs are not counted, which takes long: the answer then has the number of recordings
   * alone.
   */
  max_recordings?: number | null;
}

/** A matching passage of a field. */
export type FieldMatch = ArtifactSummary & ArtifactDetails & PlaceSummary & {
  /** The capture that the passage was read from. */
  capture_hash: CaptureHash;
  /** Whether the passage continues after the text. */
  cut_after: boolean;
  /** Whether the passage continues before the text. */
  cut_before: boolean;
  /** The name of the field. */
  field: string;
  /** The matches in the text: first character and end of each, counted in characters. */
  highlights: Array<Array<number>>;
  /** Number of further matching passages of the artifact; 0 if all are listed. */
  more: number;
  /** The relevance; higher is better. Scores of different requests cannot be compared. */
  score: number;
  /** The matching part of the text. */
  text: string;
};

/** Artifacts that match. */
export interface FindAnswer {
  /** Number of matching artifacts from the beginning of this page on. */
  found: number;
  /**
   * Number of artifacts that were omitted because another matching artifact extends them, as far as artifacts were
   * read: all of them unless there are more than `found`.
   */
  hidden: number;
  /** The artifacts in the requested order. */
  hits: Array<FoundArtifact>;
  /** Whether there are more than `found`: matches beyond the page are counted up to 1000. */
  is_more: boolean;
  /** The end of this page; `None` if it is the last one. */
  next?: FindCursor | null;
}

/** A condition on artifacts. */
export type FindCondition = {
  /** The digest. */
  digest: Digest;
  /** The group of the role, such as `prompt`; any if there is none. */
  group?: string | null;
  type: "mention";
} | {
  /** The hash. */
  digest: Digest;
  type: "about";
} | {
  /** The name. */
  name: string;
  type: "attribute";
  /** The value. */
  value: string;
} | {
  /** The name. */
  name: string;
  /** The pattern, in which `*` stands for any text, also none. */
  pattern: string;
  type: "attribute-like";
} | {
  /** The smallest number; any if there is none. */
  least?: number | null;
  /** The largest number; any if there is none. */
  most?: number | null;
  /** The name. */
  name: string;
  type: "range";
} | {
  /** The key id that the capture states; any if there is none. */
  key_id?: string | null;
  /** The state. */
  state: SignatureName;
  type: "signature";
} | {
  /** The text; every note contains an empty text. */
  text: string;
  type: "note";
} | {
  /** The tag; any if there is none. */
  name?: string | null;
  type: "tagged";
} | {
  type: "pinned";
} | {
  /** The key. */
  key: string;
  type: "label";
  /** The value; any if there is none. */
  value?: string | null;
} | {
  /** The key. */
  key: string;
  /** The pattern, in which `*` stands for any text, also none. */
  pattern: string;
  type: "label-like";
};

/** The end of a page: where the next one begins. It stays valid if artifacts are added or removed. */
export interface FindCursor {
  /** The core hash. */
  core_hash: CoreHash;
  /** The kind, if the order is by kind. */
  kind?: string | null;
  /** The number, if the order is by an attribute and the artifact has it. */
  number?: number | null;
  /** The position among equals. */
  position: number;
  /** The time, if the order is by a time and the artifact has it. */
  time?: string | null;
}

/** The order of artifacts. */
export type FindOrder = "last-seen" | "first-seen" | "created" | "core" | "kind" | {
  /** By the values of an attribute, the largest or latest first; artifacts without it come last. */
  attribute: {
    /** The name. The values must have an order: they are times, durations, counts or amounts. */
    name: string;
  };
};

/** A period of one of the times of an artifact. */
export interface FindPeriod {
  /** The time. */
  by?: TimeBasis;
  /** The beginning, inclusive. */
  since?: Timestamp | null;
  /** The end, exclusive. */
  until?: Timestamp | null;
}

/**
 * A request for artifacts.
 *
 * ```
 * # use runvault::{Vault, digest::Digest, intake::ExamineOptions};
 * use runvault::vault::find::{ArtifactFilter, Condition, FindRequest};
 *
 * # fn main() -> Result<(), Box<dyn std::error::Error>> {
 * # let directory = tempfile::tempdir()?;
 * # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
 * # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
 * let digest = Digest::from_content(b"Summarise ticket 4711 in one sentence.");
 * let conditions = vec![Condition::Mention { group: Some("prompt".to_owned()), digest }];
 * let filter = ArtifactFilter { conditions, ..ArtifactFilter::default() };
 * let answer = vault.run(&FindRequest { filter, ..FindRequest::default() })?;
 * assert_eq!(answer.hits.len(), 1);
 * # Ok(())
 * # }
 * ```
 */
export interface FindRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: FindCursor | null;
  /** Whether to include artifacts that another matching artifact extends, such as earlier versions of a trace. */
  all_versions?: boolean;
  /** What to return of each artifact besides its times and its matches. */
  details?: Array<Detail>;
  /** What the artifacts must match. If it is of packs only, a pack also matches where the session in it does. */
  filter?: ArtifactFilter;
  /** Maximum number of artifacts; unlimited if there is none. */
  limit?: number | null;
  /** The order of the artifacts. */
  order?: FindOrder;
}

/** A defect that a check found. */
export interface FindingSummary {
  /** The type of its subject, such as `artifact`. */
  about: string;
  /** The details. */
  detail: string;
  /** Its type, such as `damaged-bytes`. */
  finding: string;
  /** What findings of this type mean. */
  meaning: string;
  /** The name or hash of its subject. */
  subject: string;
}

/** The decisions of a retention policy, and what was removed. */
export interface ForgetAnswer {
  /** The time from which ages are measured. */
  at: Timestamp;
  /** The decision on each artifact of the kinds of the policy, by group, newest first. */
  decisions: Array<RetentionDecision>;
  /** What was removed; `None` in a dry run. */
  removal?: ForgetRemoval | null;
  /** Number of artifacts of each kind that the policy does not keep, by kind. */
  shares: Array<RetentionShare>;
}

/** What a retention policy removes, decided at one time. */
export interface ForgetPlan {
  /** The artifacts to be removed. */
  artifacts: Array<CoreHash>;
  /** The time from which ages are measured. */
  at: Timestamp;
}

/** What was removed. */
export interface ForgetRemoval {
  /** What remains of the removed artifacts; `None` if there are none. */
  erasure?: ErasureSummary | null;
  /** The removed artifacts, in the order of their removal. */
  removed: Array<CoreHash>;
  /** The total size of their captures in bytes. */
  size: number;
  /** The artifacts that were planned for removal and are kept because of changes since then. */
  spared: Array<CoreHash>;
}

/** A request to remove the artifacts that a retention policy does not keep, in transactions of a hundred artifacts. */
export interface ForgetRequest {
  /** Whether to only decide. */
  dry_run?: boolean;
  /**
   * The plan of an earlier dry run with the same policy. Only artifacts that it removes are removed, and of these the
   * ones that the policy keeps by now are spared, because they were added again, tagged, labeled, pinned or linked to.
   */
  plan?: ForgetPlan | null;
  /** The policy. It must have a rule. */
  policy?: RetentionPolicy;
  /** The reason, which the tombstones record. */
  reason?: string | null;
}

/** A pair of artifacts that fork. */
export type ForkSummary = {
  /** The digest of the header that they share. */
  header: Digest;
  /** The number of the first record in which they differ, from 0. */
  record: number;
  /** Both traces. */
  traces: Array<ForkedTrace>;
} | {
  /** The digest of the inputs that they share. */
  inputs: Digest;
  /** The number of the first record in which they differ, from 0. */
  record: number;
  /** Both traces. */
  traces: Array<ForkedTrace>;
} | {
  /** The run id that they share. */
  run_id: string;
  /** Both run packs. */
  runs: Array<ForkedRun>;
  /** The number of the first step in which they differ, from 0. */
  step: number;
};

/** A run pack that forks from another one. */
export interface ForkedRun {
  /** Its core hash. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The step as it is written, without white space, if it was requested. */
  says?: string | null;
  /** The digest of the step. */
  step_hash: Digest;
}

/** A trace that forks from another one. */
export interface ForkedTrace {
  /** Its core hash. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The digest of the record. */
  record_hash: Digest;
  /** The record as it is written, if it was requested. */
  says?: string | null;
}

/** Pairs of artifacts that fork. */
export interface ForksAnswer {
  /** Number of all pairs. Run packs that share two run ids count twice. */
  count: number;
  /** The pairs: traces first, by what they share and their core hashes; last those of equal inputs. */
  forks: Array<ForkSummary>;
  /** The end of this page; `None` if it is the last one. */
  next?: ForksCursor | null;
}

/** The end of a page: the pair after which the next one begins. It stays valid if artifacts are added or removed. */
export interface ForksCursor {
  /** The core hashes. */
  artifacts: Array<CoreHash>;
  /** The digest of the header that the pair shares, if they are traces. */
  header?: Digest | null;
  /** The digest of the inputs that the pair shares, if they are traces with other headers. */
  inputs?: Digest | null;
  /** The run id that the pair shares, if they are run packs. */
  run_id?: string | null;
}

/** The forks of some artifacts. */
export interface ForksOfAnswer {
  /** The pairs, each once, in the order of the requested artifacts, which are the first of their pairs. */
  forks: Array<ForkSummary>;
  /** Whether there were enough comparisons for all artifacts. */
  is_complete: boolean;
  /** Whether there are more than the limit. */
  is_more: boolean;
}

/** A request for the forks of some artifacts, without the texts of their records and steps. */
export interface ForksOfRequest {
  /** The artifacts. Those that are not in the vault are ignored. */
  artifacts?: Array<CoreHash>;
  /** Maximum number of comparisons of two artifacts; unlimited if there is none. */
  comparisons?: number | null;
  /** Maximum number of pairs; unlimited if there is none. */
  limit?: number | null;
}

/** A request for the pairs of traces and run packs that are different histories of one run. */
export interface ForksRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: ForksCursor | null;
  /** Maximum number of pairs; unlimited if there is none. */
  limit?: number | null;
}

/** An artifact that matches. */
export type FoundArtifact = ArtifactSummary & ArtifactDetails & {
  /** Where it matches, in the order of the conditions. */
  matches: Array<ArtifactMatch>;
};

/** A link that was found at a distance. */
export type FoundLink = LinkSummary & {
  /** The distance of the other end from the requested artifact, in links. */
  depth: number;
  /** The artifact from which the link is seen. */
  from: CoreHash;
};

/** An answer in an artifact. */
export interface GivenAnswer {
  /** The artifact. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The model, if the artifact names one. */
  model_id?: string | null;
  /** The location of the answer. */
  place: PlaceSummary;
  /** The time: that of creation if the artifact states it, else that of its first addition. */
  time: Timestamp;
  /** Which time it is. */
  time_basis: TimeBasis;
}

/** The values of a key by which artifacts are grouped. */
export interface GroupValues {
  /** `kind`, `label:` and the key of a label, or the name of an attribute. */
  name: string;
  /** The kind, or the values of the label or the attribute; there may be none. */
  values: Array<string>;
}

/** What was done with a link, tag, note or label of a bundle. */
export type ImportOutcome = "present" | "linked" | "not_linked" | "tagged" | "not_tagged" | "noted" | "not_noted" | "labeled" | "not_labeled";

/** A label of a bundle, and what was done with it. */
export interface ImportedLabelSummary {
  /** The artifact. */
  core_hash: CoreHash;
  /** The key. */
  key: string;
  /** What was done. */
  outcome: ImportOutcome;
  /** The value. */
  value: string;
}

/** A link of a bundle, and what was done with it. */
export interface ImportedLinkSummary {
  /** The ends that are not in the vault, if it was not added. */
  missing: Array<CoreHash>;
  /** Its note. */
  note?: string | null;
  /** What was done. */
  outcome: ImportOutcome;
  /** The relation. */
  relation: string;
  /** The artifact that the link is from. */
  source: CoreHash;
  /** The artifact that the link is to. */
  target: CoreHash;
}

/** A note of a bundle, and what was done with it. */
export interface ImportedNoteSummary {
  /** The artifact. */
  core_hash: CoreHash;
  /** The text. */
  note: string;
  /** What was done. */
  outcome: ImportOutcome;
}

/** A tag of a bundle, and what was done with it. */
export interface ImportedTagSummary {
  /** The artifact that it names in the bundle. */
  core_hash: CoreHash;
  /** What was done. */
  outcome: ImportOutcome;
  /** The other artifact that has the tag in the vault. */
  stands_for?: CoreHash | null;
  /** The tag. */
  tag: string;
}

/** A value of a file that was not imported as it is. */
export interface ImportedValue {
  /** The file. */
  file: string;
  /** The location in the file. */
  location: string;
  /** What was done. */
  outcome: ValueOutcome;
  /** The value, and the reason why it is not mapped, or what is recorded instead. */
  reason: string;
}

/** A page of journal entries. */
export interface JournalAnswer {
  /** The entries, oldest first. */
  entries: Array<JournalEntry>;
  /** The number of the last entry of this page; `None` if it is the last page. */
  next?: number | null;
}

/** A journal entry. */
export interface JournalEntry {
  /** Its chain value. */
  chain: Digest;
  /** What it records. */
  entry: Record<string, unknown>;
  /** Its number: 1, 2, 3, and so on. */
  seq: number;
}

/** The last entry of a journal. */
export interface JournalHead {
  /** Its chain value: the digest of all entries; 32 zero bytes if the journal is empty. */
  chain: Digest;
  /** Its number; 0 if the journal is empty. */
  seq: number;
}

/** A request for the last journal entry. */
export type JournalHeadRequest = Record<string, unknown>;

/** A request for journal entries. Everything given must hold. */
export interface JournalRequest {
  /** Only entries that contain this hash, or have it as their chain value. */
  about?: Digest | null;
  /** Only entries of this action, such as `add`. */
  action?: string | null;
  /** The number of an entry: only those after it. */
  after?: number | null;
  /** Only this number of entries, the last ones. Ignored if `after` is given. */
  last?: number | null;
  /** Maximum number of entries of this page; 1000 if there is none. */
  limit?: number | null;
  /** Only entries at this time or later. */
  since?: Timestamp | null;
  /** Only entries before this time. */
  until?: Timestamp | null;
}

/** A JSON value, as it is recorded. */
export type JsonText = unknown;

/** A JSON value. Numbers that neither 64 bits nor a double represent exactly are strings of their digits. */
export type JsonValue = unknown;

/** A file of a removed artifact that is kept because other artifacts contain it. */
export interface KeptFile {
  /** The core hashes of the artifacts that contain it, in order; at most 5. */
  artifacts: Array<CoreHash>;
  /** The number of artifacts that contain it. */
  count: number;
  /** The same artifacts with their kinds. */
  dependents: Array<ArtifactName>;
  /** Its name in the removed artifact. */
  file: string;
}

/** The content of one kind. */
export interface KindTotals {
  /** Number of artifacts. */
  artifacts: number;
  /** The size of the captures in bytes, as they were received. */
  bytes: number;
  /** Number of their captures. */
  captures: number;
  /** The name of the kind. */
  kind: string;
}

/** A key of labels, with its use. */
export interface LabelKey {
  /** Number of artifacts with this key. */
  artifacts: number;
  /** The key. */
  key: string;
  /** Number of different values. */
  values: number;
}

/** The keys of labels. */
export interface LabelKeysAnswer {
  /** The keys, sorted. */
  keys: Array<LabelKey>;
}

/** A request for the keys of the labels that artifacts have. */
export type LabelKeysRequest = Record<string, unknown>;

/** The content by the values of a key of labels. */
export interface LabelStats {
  /** The key. */
  key: string;
  /** Number of artifacts without this key. */
  unlabeled: number;
  /** The values, sorted. */
  values: Array<LabelValue>;
}

/** A label of an artifact. */
export interface LabelSummary {
  /** The key. */
  key: string;
  /** The time at which the artifact got this value. */
  labeled_at: Timestamp;
  /** The value. */
  value: string;
}

/** A value of a key of labels, with the artifacts that have it. */
export interface LabelValue {
  /** Number of artifacts. */
  artifacts: number;
  /** The size of the captures in bytes, as they were received. */
  bytes: number;
  /** Number of their captures. */
  captures: number;
  /** The value. */
  value: string;
}

/** The values of a key of labels. */
export interface LabelValuesAnswer {
  /** The values, sorted. */
  values: Array<LabelValue>;
}

/** A request for the values of a key of labels. */
export interface LabelValuesRequest {
  /** The key. */
  key: string;
  /** Maximum number of values; unlimited if there is none. */
  limit?: number | null;
  /** The beginning of the values; all values if it is empty. */
  prefix?: string;
}

/** The labels of an artifact. */
export interface LabelsAnswer {
  /** The labels, by key. */
  labels: Array<LabelSummary>;
}

/** A request for the labels of an artifact. */
export interface LabelsRequest {
  /** The artifact. */
  artifact: CoreHash;
}

/** The last audit of a contract. */
export interface LastAudit {
  /** The audit of the latest of them: by the creation time that it states, or by its first addition if it states none. */
  latest?: RunAudit | null;
  /** Number of runs in the vault that the contract governs. */
  runs: number;
}

/** A link between two nodes. */
export interface LinkEdge {
  /** The location that it is derived from, or the note on a manual link. */
  because?: string | null;
  /** The number of the node of the source, from 0. */
  from: number;
  /** Whether the link was added manually. Otherwise it is derived from the artifacts. */
  manual: boolean;
  /** The relation of the source to the target. */
  relation: string;
  /** How surely the artifacts belong together. */
  strength: LinkStrength;
  /** The number of the node of the target. */
  to: number;
}

/** An end of a link: an artifact, or the hash or name of one that is not in the vault. */
export interface LinkEnd {
  /** The core hash of the artifact. */
  core_hash?: CoreHash | null;
  /** Whether it is not in the vault. */
  dangling: boolean;
  /** The core hash that is not in the vault. */
  digest?: Digest | null;
  /** The id of the kind of the artifact. */
  kind?: string | null;
  /** The name that is not in the vault. */
  name?: string | null;
}

/** A node of a graph of links. */
export type LinkNode = LinkEnd & {
  /** Its distance from the requested artifact, in links that were followed. */
  depth: number;
};

/** How surely linked artifacts belong together. */
export type LinkStrength = "stated" | "coincident";

/** A link of an artifact. */
export type LinkSummary = LinkEnd & {
  /** The location that it is derived from, or the note on a manual link. */
  because?: string | null;
  /** The direction, seen from the artifact. */
  direction: Direction;
  /** Whether the link was added manually. Otherwise it is derived from the artifacts. */
  manual: boolean;
  /** The relation of the source to the target. */
  relation: string;
  /** How surely the artifacts belong together. */
  strength: LinkStrength;
};

/** Links as a graph: each artifact once, the requested one first, then by distance. */
export interface LinksAnswer {
  /** The links between them. */
  edges: Array<LinkEdge>;
  /** Number of links of examined artifacts that were omitted because of the limit. */
  left_out: number;
  /** The artifacts, and the missing ones that they refer to. */
  nodes: Array<LinkNode>;
  /** Number of artifacts within the depth whose links were not examined because of the limit. */
  not_followed: number;
  /** Number of artifacts within the depth whose links were not examined because only coincident links lead to them. */
  only_coincident: number;
}

/** A request for the links of an artifact, followed to a given depth. */
export interface LinksRequest {
  /** The artifact. */
  artifact: CoreHash;
  /** Whether coincident links are followed as well. They are always shown, and those of `relation` are followed. */
  coincident?: boolean;
  /** Maximum distance from the artifact, in links. */
  depth?: number;
  /** Only links in this direction. */
  direction?: Direction | null;
  /** Maximum number of links; unlimited if there is none. */
  limit?: number | null;
  /** Only links of this relation. */
  relation?: string | null;
}

/** A page of a list of runs and other artifacts. */
export interface ListAnswer {
  /** The end of this page; `None` if it is the last one. */
  next?: FindCursor | null;
  /** The rows in the requested order. */
  rows: Array<ListRow>;
}

/** The values of an attribute. */
export interface ListAttribute {
  /** The name. */
  name: string;
  /** The values of all artifacts of the row, sorted by the order of their type, without duplicates. */
  values: Array<string>;
}

/** An artifact of a row. */
export type ListMember = ArtifactSummary & ArtifactDetails & {
  /** Whether it matches the filter. */
  matches: boolean;
};

/** A request for a list of runs and other artifacts. */
export interface ListRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: FindCursor | null;
  /** The only artifacts that can match; any if empty. */
  artifacts?: Array<CoreHash>;
  /** The names of further attributes to return. */
  attributes?: Array<string>;
  /** The details of each artifact to return. */
  details?: Array<Detail>;
  /** What the artifacts must match. A row is listed if one of its artifacts matches. */
  filter?: ArtifactFilter;
  /** Whether each artifact has a row of its own. Otherwise the artifacts of one run are one row. */
  flat?: boolean;
  /** Maximum number of rows; unlimited if there is none. */
  limit?: number | null;
  /** The order of the rows: that of the first matching artifact of each. */
  order?: FindOrder;
  /** The prices by which the costs of runs that state none are computed. */
  prices?: Array<ModelPrice>;
}

/**
 * A run, or another artifact, with what its artifacts state. If several state a number or a time, the largest counts, where
 * the numbers of the parts of a run are added up; of texts, those of the first one in `members` that states any. A value
 * that none states is `None`.
 */
export type ListRow = ArtifactSummary & {
  /** The agents. */
  agents: Array<string>;
  /** The requested attributes, by name. */
  attributes: Array<ListAttribute>;
  /** Whether the costs are not stated, but computed from the tokens and the prices in the request. */
  cost_computed?: boolean;
  /** The costs in US dollars. */
  cost_usd?: number | null;
  /** The latest creation time. */
  created_at?: Timestamp | null;
  /** The milliseconds from beginning to end. */
  duration_ms?: number | null;
  /** Number of steps that failed or are errors. */
  errors?: number | null;
  /** The latest time at which it ended. */
  finished_at?: Timestamp | null;
  /** Number of interactions. */
  interactions?: number | null;
  /** The labels of all its artifacts: the values of each key, sorted. */
  labels: Record<string, Array<string>>;
  /** The sum of the milliseconds that its steps or interactions took. */
  latency_ms?: number | null;
  /** Its artifacts: recordings of the run first, those that they contain last. */
  members: Array<ListMember>;
  /** The models. */
  models: Array<string>;
  /** The providers of the models. */
  providers: Array<string>;
  /** The result of an export pack. */
  result?: string | null;
  /** The id of the run. */
  run_id?: string | null;
  /** Number of steps. */
  steps?: number | null;
  /** The tags of all its artifacts, by name. */
  tags: Array<string>;
  /** Number of tokens, input and output. */
  tokens?: number | null;
  /** Number of input tokens. */
  tokens_input?: number | null;
  /** Number of output tokens. */
  tokens_output?: number | null;
  /** Number of tool calls. */
  tool_calls?: number | null;
};

/** A longer prompt. */
export interface LongerPrompt {
  /** The artifact. */
  core_hash: CoreHash;
  /** Its location. */
  place: PlaceSummary;
}

/** A file of a capture. */
export interface MemberSummary {
  /** Its name. */
  name: string;
  /** Its size in bytes. */
  size: number;
}

/** Number of the mentions of an artifact in one role. */
export interface MentionCount {
  /** The number of mentions. */
  count: number;
  /** The role. */
  role: string;
}

/** A hash that artifacts mention. */
export interface MentionedHash {
  /** The artifacts that were last added or seen again, newest first. */
  artifacts: Array<MentioningArtifact>;
  /** Number of artifacts that mention it, counted up to 1000. */
  count: number;
  /** The hash. */
  digest: Digest;
  /** Whether there are more. */
  is_more: boolean;
}

/** An artifact that mentions a hash. */
export type MentioningArtifact = ArtifactSummary & {
  /** Where it mentions it. */
  matches: Array<ArtifactMatch>;
};

/** A file in a message. */
export interface MessageMedia {
  /** Where it is, if the message does not contain it: an address or an id. */
  location?: string | null;
  /** The media type, or its first part, such as `image`. */
  media_type: string;
  /** The name of the file, if stated. */
  name?: string | null;
  /** The size in bytes, if the message contains it. */
  size?: number | null;
}

/** A part of a message. */
export type MessagePart = {
  /** The text, which is Markdown as a rule. */
  text: string;
  type: "text";
} | {
  /** The text; empty if the API states it encrypted. */
  text: string;
  type: "thinking";
} | MessageMedia & {
  type: "media";
} | MessageToolCall & {
  type: "tool-call";
} | MessageToolResult & {
  type: "tool-result";
} | {
  /** The text. */
  text: string;
  type: "refusal";
} | {
  /** Number of vectors. */
  count: number;
  /** Number of numbers of each. */
  dimensions: number;
  type: "embeddings";
} | {
  /** The SHA-256 of its bytes. */
  digest: Digest;
  type: "unrecorded";
} | {
  type: "other";
  /** The JSON of the part, without white space, or a text that is not JSON. */
  value: string;
};

/** The author of a message. */
export type MessageRole = "system" | "user" | "assistant" | "tool";

/** A call of a tool. */
export interface MessageToolCall {
  /** The arguments: JSON without white space if they are JSON. */
  arguments: string;
  /** The id by which the result names the call, if the API has one. */
  id?: string | null;
  /** The name of the tool. */
  name: string;
  /** What the tool returned, if a later request of the thread has it. It is not among the messages of that request. */
  result?: MessageToolResult | null;
}

/**
 * The result of a call of a tool.
 *
 * It belongs to the call with its id, or to the first one without a result where there are no ids.
 */
export interface MessageToolResult {
  /** The id of the call, if the API has one. */
  id?: string | null;
  /** Whether it is stated to be an error. */
  is_error: boolean;
  /** The name of the tool, if the result states it. */
  name?: string | null;
  /** What the tool returned. */
  parts: Array<MessagePart>;
}

/** A missing artifact, with the references to it. */
export type MissingArtifact = LinkEnd & {
  /** The references, by artifact and place. */
  referrers: Array<MissingReference>;
};

/** A reference to a missing artifact. */
export interface MissingReference {
  /** The artifact that refers to the missing one. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The location of the reference; empty for names. */
  place: string;
  /** The relation of the reference. */
  relation: string;
  /** The role; `None` for names. */
  role?: string | null;
}

/** The price of a model, for a million tokens. */
export interface ModelPrice {
  /** The price of a million input tokens in US dollars. */
  input: UsdAmount;
  /**
   * The id of the model; with `*` at the end, the models whose ids begin with what precedes it. Of several that match,
   * the whole id counts, otherwise the longest beginning.
   */
  model: string;
  /** The price of a million output tokens in US dollars. */
  output: UsdAmount;
}

/** What is similar to the conditions of a filter. */
export interface NearAnswer {
  /** Longer prompts that contain it, if there is a search index: the best ones. */
  longer_prompts: Array<LongerPrompt>;
  /** The form in which artifacts mention the prompt, if it differs only in line feeds at the end. */
  prompt?: NearPrompt | null;
  /** The conditions that no artifact matches, with similar values. */
  values: Array<NearValues>;
}

/** A prompt that differs from the requested one only in line feeds at the end. */
export interface NearPrompt {
  /** Number of artifacts that mention it. */
  count: number;
  /** Its hash. */
  digest: Digest;
  /** Whether it has a line feed at the end that the requested one does not have. Otherwise it is the other way round. */
  has_line_feed: boolean;
}

/** A request for what is similar to the conditions of a filter. */
export interface NearRequest {
  /** The filter. Only its conditions on attributes, labels and tags are considered. */
  filter?: ArtifactFilter;
  /** The text of a prompt, if its hash is one of the conditions. */
  prompt?: string | null;
}

/** The values that artifacts have in place of one that none has. */
export interface NearValues {
  /** The name of an attribute, `label` or `label:` and a key, or `tag`. */
  name: string;
  /** Similar ones, the most similar first; some others if none is similar and there are few. */
  similar: Array<string>;
  /** The value that no artifact has. */
  value: string;
}

/** The note of an artifact. */
export interface NoteAnswer {
  /** The note; `None` if the artifact has none. */
  note?: NoteSummary | null;
}

/** A request for the note of an artifact. */
export interface NoteRequest {
  /** The artifact. */
  artifact: CoreHash;
}

/** A note. */
export interface NoteSummary {
  /** The core hash of the artifact. */
  core_hash: CoreHash;
  /** The text. */
  note: string;
  /** The time at which it was written. */
  noted_at: Timestamp;
}

/** The number of findings that are not listed. */
export interface OmittedFindings {
  /** The contract. */
  contract: CoreHash;
  /** The run. */
  run: CoreHash;
  /** The id that the run states, if it states one. */
  run_id?: string | null;
  /** The number. */
  violations_omitted: number;
}

/** A difference between two artifacts. */
export interface PartChange {
  /** The type. */
  change: ChangeType;
  /** The part in the first artifact. */
  one?: string | null;
  /** The part in the second artifact. */
  other?: string | null;
  /** A description of the difference; empty if the type describes it. */
  says: string;
  /** The values that differ; the whole part if only one of the artifacts has it. */
  values: Array<ChangedValue>;
}

/** The shortest path. Of equally short ones, it is the first by relation and hash. */
export interface PathAnswer {
  /**
   * Whether the search is complete: a path was found, or the links of all reached artifacts were read. It ends before
   * that after those of 10,000 artifacts.
   */
  is_complete: boolean;
  /** Number of artifacts that were reached from the start, which is one of them. */
  reached: number;
  /** The steps; `None` if no path was found. */
  steps?: Array<PathStep> | null;
}

/** The path of a file, which need not be UTF-8. */
export interface PathName {
  /** The path. Bytes that are not UTF-8 are replaced by U+FFFD. */
  path: string;
  /** All bytes of the path as lowercase hex digits; missing if it is UTF-8. */
  path_bytes?: string | null;
}

/** A request for the shortest path of links between two artifacts, in any direction. */
export interface PathRequest {
  /** Whether coincident links are followed as well. */
  coincident?: boolean;
  /** Where the path starts. */
  from: CoreHash;
  /** Where it ends. */
  to: CoreHash;
}

/** A step of a path. */
export type PathStep = LinkSummary & {
  /** The artifact from which the link is seen. */
  from: CoreHash;
};

/** A rule that keeps the newest artifact of each of the last periods. */
export interface PeriodRule {
  /** The number of periods. */
  count: number;
  /** The type of period. */
  period: CalendarPeriod;
}

/** A request to protect an artifact from removal. It replaces the note of an existing pin. */
export interface PinRequest {
  /** The artifact. */
  core_hash: CoreHash;
  /** The reason. A blank one is as none. */
  note?: string | null;
}

/** A pinned artifact. */
export interface PinSummary {
  /** Its core hash. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The reason, if one was given. */
  note?: string | null;
  /** The time at which it was pinned. */
  pinned_at: Timestamp;
}

/** All pinned artifacts. */
export interface PinsAnswer {
  /** The artifacts in the order in which they were pinned. */
  pins: Array<PinSummary>;
}

/** A request for all pinned artifacts. */
export type PinsRequest = Record<string, unknown>;

/** A location in an artifact. */
export type PlaceSummary = {
  /** The number, from 0. */
  index: number;
  /** The unit, such as `step`. */
  unit: string;
} | {
  /** A JSON Pointer; in JSON Lines, `line 7` and a pointer into it. */
  pointer: string;
};

/** A prompt and its answers. */
export interface PromptAnswers {
  /** The different answers, by the time at which each was first given. */
  answers: Array<DistinctAnswer>;
  /** Number of answers. */
  count: number;
  /** The text of the prompt, if an artifact in the vault records it. */
  prompt?: ViewBody | null;
  /** The digest of the prompt. */
  prompt_hash: Digest;
}

/** The result of reclaiming disk space. */
export interface ReclaimAnswer {
  /** Number of unreferenced blobs that were removed. */
  blobs: number;
  /** Their size afterwards; 0 if nothing was to be done. */
  bytes_after: number;
  /** The size of the vault's files in bytes before; 0 if nothing was to be done. */
  bytes_before: number;
  /** Whether there was something to do. Otherwise, nothing was changed. */
  changed: boolean;
  /** Number of dictionaries that were removed. */
  dictionaries: number;
  /** Whether removed data remains in the write-ahead log, because others were reading from it. */
  log_remains: boolean;
  /** Number of objects in object storage that were deleted because no artifact was stored with them: interrupted uploads. */
  orphans: number;
  /** Number of payloads that were recompressed. */
  recompressed: number;
}

/**
 * A request to remove unreferenced data and to shrink the vault's files to their minimum size. Afterwards, no removed
 * data remains in them.
 */
export type ReclaimRequest = Record<string, unknown>;

/** What reclaiming disk space would remove. */
export type ReclaimableAnswer = ReclaimableSpace & {
  /** The minimum number of bytes that can be reclaimed: the sum of `blob_bytes` and `free_bytes`. */
  bytes: number;
};

/** A request for what reclaiming disk space would remove. */
export type ReclaimableRequest = Record<string, unknown>;

/** The reclaimable space of a vault. */
export interface ReclaimableSpace {
  /** The stored size of these blobs in bytes. */
  blob_bytes: number;
  /** Number of unreferenced blobs. */
  blobs: number;
  /** Number of dictionaries that are unused, or that may contain pieces of removed documents. */
  dictionaries: number;
  /** Number of free bytes in the file. */
  free_bytes: number;
  /** Whether something was removed since the file was last rewritten. */
  has_removals: boolean;
}

/** A recorded response. */
export interface RecordedResponse {
  /** The arguments of the tool call, in the form in which calls are compared; `None` if they are not known. */
  arguments?: JsonText;
  /** The digest of the arguments. */
  arguments_hash?: Digest | null;
  /** The number of the interaction or step, from 0. */
  index: number;
  /** Whether the call failed: the response is then the recorded error message. */
  is_error: boolean;
  /** The complete recorded response; `None` for interactions of sessions. */
  output?: JsonText;
  /** The digests of the texts in the request, with the actual prompt last. */
  prompt_hashes: Array<Digest>;
  /** `model` or `tool`. */
  responder: string;
  /** The text of the response. */
  response: string;
  /** The name of the tool, if it was recorded. */
  tool?: string | null;
}

/** A filter of the recordings of a prompt. */
export interface RecordingFilter {
  /** Attributes that a recording must have. */
  attributes?: Array<AttributeSummary>;
  /** Last seen at this time or later. */
  since?: Timestamp | null;
  /** Last seen before this time. */
  until?: Timestamp | null;
}

/** Recordings of a prompt. */
export interface RecordingsAnswer {
  /** The end of this page; `None` if it is the last one. */
  next?: FindCursor | null;
  /** The recordings, last seen first, with the locations of the prompt. */
  recordings: Array<FoundArtifact>;
}

/** A request for the recordings in which a prompt can be looked up. */
export interface RecordingsRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: FindCursor | null;
  /** What to return of each artifact besides its times and its matches. */
  details?: Array<Detail>;
  /** What the recordings must match. */
  filter?: RecordingFilter;
  /** Maximum number of recordings; unlimited if there is none. */
  limit?: number | null;
  /** The SHA-256 of the prompt. */
  prompt: Digest;
}

/** A capture that was not copied. */
export interface RejectedCapture {
  /** Its name: the source, and the beginning of the capture's hash. */
  name: string;
  /** The first violation. */
  reason: string;
}

/** A part of the vault's files that may still contain removed bytes. */
export type RemnantSummary = {
  /** The size in bytes up to which files are rewritten. */
  limit: number;
  part: "large-file";
} | {
  part: "file";
  /** The reason. */
  reason: string;
} | {
  /** The ids of the kinds. */
  kinds: Array<string>;
  part: "dictionaries";
} | {
  part: "log";
} | {
  part: "database";
} | {
  part: "objects";
};

/** The removed artifacts. */
export interface RemoveAnswer {
  /** What remains of them; `None` in a dry run. */
  erasure?: ErasureSummary | null;
  /** The artifacts as they were before: the requested ones, then their containers. */
  removed: Array<Removed>;
}

/** A request to remove labels from artifacts. */
export interface RemoveLabelsRequest {
  /** The artifacts. */
  core_hashes: Array<CoreHash>;
  /** The keys of the labels. */
  keys: Array<string>;
}

/** A request to remove a manual link. Derived links cannot be removed. */
export interface RemoveLinkRequest {
  /** The relation. */
  relation: string;
  /** The source artifact. */
  source: CoreHash;
  /** The target artifact. */
  target: CoreHash;
}

/** A request to remove the note of an artifact. */
export interface RemoveNoteRequest {
  /** The artifact. */
  core_hash: CoreHash;
}

/**
 * A request to remove artifacts with all their captures: all of them or none. Tombstones remain. Files that artifacts
 * share are kept as long as one of the artifacts is.
 */
export interface RemoveRequest {
  /** The artifacts. */
  artifacts?: Array<CoreHash>;
  /**
   * Whether to only answer what would be removed now. The removal itself checks everything again in its own
   * transaction.
   */
  dry_run?: boolean;
  /** Whether to remove them even if other artifacts link to them. */
  ignore_links?: boolean;
  /** The reason, which the tombstones record. */
  reason?: string | null;
  /** Whether to also remove the artifacts that contain their bytes, such as the packs of a session. */
  with_containers?: boolean;
}

/** A request to remove a tag. */
export interface RemoveTagRequest {
  /** The tag. */
  name: string;
}

/** A removed artifact. */
export interface Removed {
  /** Its captures in the order in which they were added. */
  captures: Array<CaptureHash>;
  /** Its core hash. */
  core_hash: CoreHash;
  /** Whether no byte of it is left in the vault's files, except those of `shared`; missing in a dry run. */
  erased?: boolean | null;
  /** The id of its kind. */
  kind: string;
  /** Its files that are kept because other artifacts contain them, by name. */
  shared: Array<KeptFile>;
  /** The total size of its captures in bytes. */
  size: number;
}

/** A removed artifact. */
export interface RemovedArtifact {
  /** Who removed it, if that is recorded. */
  actor?: string | null;
  /** Its core hash. */
  core_hash: CoreHash;
  /** The id of its kind. */
  kind: string;
  /** The reason, if one was given. */
  reason?: string | null;
  /** The time of the removal. */
  removed_at: Timestamp;
  /** The number of the journal entry. */
  seq: number;
  /** Number of bytes that were removed. */
  size: number;
}

/** The hash of an artifact or a capture that was removed. */
export interface RemovedHash {
  /** The core hash or the capture hash. */
  digest: Digest;
  /** The removal. */
  removed: RemovedArtifact;
}

/** A completed repair. */
export interface RepairSummary {
  /** The type of its subject, such as `artifact`. */
  about: string;
  /** What was done. */
  repaired: string;
  /** The name or hash of its subject. */
  subject: string;
}

/** The recorded response to a prompt. */
export interface ReplayAnswer {
  /** Its capture. */
  capture_hash: CaptureHash;
  /** The recording. */
  core_hash: CoreHash;
  /** The number of the interaction or step, from 0. */
  index: number;
  /** Which recording of the prompt this is, from 1. */
  occurrence: number;
  /** Number of recordings of the prompt. */
  occurrences: number;
  /** The SHA-256 of the prompt. */
  prompt_hash: Digest;
  /** The response. */
  response: string;
  /** The SHA-256 of the response. */
  response_hash: Digest;
}

/** A request for the recorded response to a prompt. */
export interface ReplayRequest {
  /** The recording; the one that was last added or seen again if there is none. */
  artifact?: CoreHash | null;
  /** The number of the call, from 0, if calls must be in recorded order. */
  call?: number | null;
  /** The capture of the recording; the preferred one if there is none. */
  capture_hash?: CaptureHash | null;
  /** What the recording must match, if none is given. */
  filter?: RecordingFilter;
  /** Which recording of the prompt, from 1; the first if there is none. */
  occurrence?: number | null;
  /** The SHA-256 of the prompt. */
  prompt: Digest;
}

/** What a text refers to. */
export type ResolveAnswer = {
  /** The artifact. */
  artifact: ArtifactSummary;
  /** The preferred capture. */
  capture_hash: CaptureHash;
  outcome: "artifact";
} | {
  /** The artifact. */
  artifact: ArtifactSummary;
  /** The capture. */
  capture_hash: CaptureHash;
  outcome: "capture";
} | MentionedHash & {
  outcome: "mentioned";
} | {
  /** The first of them, in order. */
  candidates: Array<ResolveCandidate>;
  /** Their number, if it is known. */
  count?: number | null;
  outcome: "ambiguous";
} | {
  outcome: "removed";
  /** The artifact. */
  removed: RemovedArtifact;
} | {
  /** The reason. */
  message: string;
  outcome: "not-found";
};

/** Something that a text may refer to. */
export type ResolveCandidate = {
  /** Its core hash. */
  core_hash: CoreHash;
  type: "artifact";
} | {
  /** Its hash. */
  capture_hash: CaptureHash;
  /** The core hash of its artifact. */
  core_hash: CoreHash;
  type: "capture";
} | {
  /** The hash. */
  digest: Digest;
  type: "mentioned";
};

/**
 * A request for what a text refers to.
 *
 * ```
 * # use runvault::{Vault, intake::ExamineOptions, vault::resolve::ResolveRequest};
 * # fn main() -> Result<(), Box<dyn std::error::Error>> {
 * # let directory = tempfile::tempdir()?;
 * # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
 * let options = ExamineOptions::default();
 * let session = vault.add_document(std::fs::read("examples/session.json")?, &options)?;
 * let run = vault.add_document(std::fs::read("examples/run.rpk")?, &options)?;
 * assert_eq!(ResolveRequest::new("latest").locate(&vault)?.artifact.core, run.core);
 * assert_eq!(ResolveRequest::new("latest~1").locate(&vault)?.artifact.core, session.core);
 * # Ok(())
 * # }
 * ```
 */
export interface ResolveRequest {
  /** Whether a hash that captures of several artifacts have refers to the first of them. They have the same bytes. */
  any_artifact?: boolean;
  /**
   * The text: a hash or the first digits of one, `@` and a tag, `latest`, `latest~1` for the artifact before it, `run:`
   * and the id of a run, a tag or the id of a run alone, or the address of a page. A text that refers to different
   * artifacts, as a hash, a tag or the id of a run, is ambiguous.
   */
  text: string;
}

/** The recorded responses of an artifact. */
export interface ResponsesAnswer {
  /** Number of all responses. */
  count: number;
  /** The end of this page; `None` if it is the last one. */
  next?: number | null;
  /** The responses, in recorded order. */
  responses: Array<RecordedResponse>;
  /** The unit in which they are counted: `interaction` or `step`. */
  unit: string;
}

/** A request for the recorded responses of an artifact. */
export interface ResponsesRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: number | null;
  /** The recording. */
  artifact: CoreHash;
  /** Its capture; the preferred one if there is none. */
  capture_hash?: CaptureHash | null;
  /** Maximum number of responses; unlimited if there is none. */
  limit?: number | null;
}

/** The decision of a retention policy on an artifact. */
export type RetentionDecision = ArtifactSummary & {
  /** That time; `None` if the artifact does not have it. */
  at?: Timestamp | null;
  /** Which of its times is used. */
  by: TimeBasis;
  /** The values that define its group. */
  group: Array<GroupValues>;
  /** Whether it is kept. */
  keep: boolean;
  /** Descriptions of why it is kept, or why no rule keeps it. */
  reasons: Array<string>;
  /** The total size of its captures in bytes. */
  size: number;
};

/** A label: any value of a key, or one value. */
export interface RetentionLabel {
  /** The key. */
  key: string;
  /** The value; any if there is none. */
  value?: string | null;
}

/** A retention policy: an artifact is kept if any rule keeps it. */
export interface RetentionPolicy {
  /** The time that is used. Artifacts without this time are kept. */
  by?: TimeBasis;
  /**
   * The keys by which artifacts are grouped: `kind`, `label:` and the key of a label, or the name of an attribute.
   * Without any, all artifacts are one group.
   */
  group_by?: Array<string>;
  /**
   * Remove artifacts even if a kept artifact links to them. Artifacts whose bytes a kept artifact contains are still
   * kept.
   */
  ignore_links?: boolean;
  /** Keep artifacts with one of these labels. */
  keep_labels?: Array<RetentionLabel>;
  /** Keep this number of the newest artifacts of each group. 0 as the only rule keeps none. */
  keep_last?: number | null;
  /**
   * Keep the newest artifact of each of a number of last non-empty periods, and the oldest of a group while there
   * are fewer.
   */
  keep_periods?: Array<PeriodRule>;
  /** Keep artifacts with a tag that matches one of these patterns: a tag, or the beginning of one and `*`. */
  keep_tags?: Array<string>;
  /**
   * Keep artifacts whose time is at most this number of milliseconds before now. If the limit cannot be computed,
   * all are kept.
   */
  keep_within_ms?: number | null;
  /**
   * The ids of the kinds that the policy applies to; all if empty. Other artifacts are kept, and there is no
   * decision on them.
   */
  kinds?: Array<string>;
  /**
   * The labels that an artifact must all have for the policy to apply to it; any artifact if empty. Other artifacts
   * are kept, and there is no decision on them.
   */
  labels?: Array<RetentionLabel>;
}

/** Number of artifacts of a kind that would be removed. */
export interface RetentionShare {
  /** The kind. */
  kind: string;
  /** Number of artifacts to be removed. */
  removed: number;
  /** Total number. */
  total: number;
}

/** A rule. */
export interface RuleSummary {
  /** The id, such as `MI7`. */
  id: string;
  /**
   * The id of the kind that the rule is for; `document` for all, `vault` for artifacts added to one, `audit` for audits
   * of contracts, `bundle` for bundles, `import` for files of other programs.
   */
  kind: string;
  /** The consequence of breaking it. */
  severity: Severity;
  /** The requirement, in one line. */
  summary: string;
  /** The reason, and how to fix a violation. */
  why: string;
}

/** Rules. */
export interface RulesAnswer {
  /** The rules: those of all documents, of each kind, of vaults, of audits, of bundles and of files of other programs. */
  rules: Array<RuleSummary>;
}

/** A request for rules. */
export interface RulesRequest {
  /** The id of a rule, ignoring case: only this one. */
  id?: string | null;
}

/** The audit of a run. */
export interface RunAudit {
  /** Whether there are effects, all of them are verified, and there is no finding. */
  clean: boolean;
  /** The effects of the contract, in order. */
  effects: Array<EffectAudit>;
  /** Violations of the contract, and what could not be checked. */
  findings: Array<AuditFinding>;
  /** The id of its kind. */
  kind: string;
  /** The number of findings that are not listed, if there are any. */
  omitted?: OmittedFindings | null;
  /** The run. */
  run: CoreHash;
  /** The id that it states, if it states one. */
  run_id?: string | null;
}

/** The number of runs that match a filter. */
export interface RunCounts {
  /**
   * The most frequent values of the requested attributes: by name, each with the most runs first. A run with several
   * values counts for each.
   */
  attributes: Array<RunValueCount>;
  /** Number of runs with errors. */
  failures: number;
  /** The most frequent labels, most runs first. */
  labels: Array<RunValueCount>;
  /** Number of runs. */
  runs: number;
  /** Number of runs with a recording that states that there were none. */
  successes: number;
}

/** The runs with one value. A run with several values is in the group of each. */
export type RunGroup = RunTotals & {
  /** The value. */
  value: string;
};

/** What runs are grouped by. */
export type RunGrouping = {
  type: "day";
} | {
  /** The key. */
  key: string;
  type: "label";
} | {
  /** The name. */
  name: string;
  type: "attribute";
};

/** Statistics of runs by what they state. */
export interface RunStatsAnswer {
  /** The days in their order, if they were requested too. */
  days?: Array<RunGroup>;
  /** The runs with each value: days in their order, other values by the number of runs, most first, and by value. */
  groups: Array<RunGroup>;
  /** All runs. */
  total: RunTotals;
  /** Number of runs without a value. */
  without: number;
}

/** A request for statistics of runs by what they state. */
export interface RunStatsRequest {
  /** What runs are grouped by. */
  by?: RunGrouping;
  /** What the runs must match. If it names no kinds, it is of all that record what an agent or a model did. */
  filter?: ArtifactFilter;
  /** The prices by which the costs of runs that state none are computed. */
  prices?: Array<ModelPrice>;
  /** Whether to count the runs of each day too. */
  with_days?: boolean;
}

/** What some runs state together. What none of them states is `None`. */
export interface RunTotals {
  /** The costs in US dollars of the runs of which they are known. */
  cost_usd?: number | null;
  /** Number of runs with errors. */
  failures: number;
  /**
   * Half of the runs took at most this number of milliseconds: the latency that they state, otherwise the time from
   * beginning to end. Rounded down to three digits.
   */
  latency_p50_ms?: number | null;
  /** Of 100 runs, 95 took at most this number of milliseconds. */
  latency_p95_ms?: number | null;
  /** Number of runs. */
  runs: number;
  /** Number of runs of which the costs are known. */
  runs_with_cost: number;
  /** Number of input tokens. */
  tokens_input?: number | null;
  /** Number of output tokens. */
  tokens_output?: number | null;
}

/** The number of runs with a value. */
export interface RunValueCount {
  /** The name of the attribute, or the key of the label. */
  name: string;
  /** Number of runs. */
  runs: number;
  /** The value. */
  value: string;
}

/** Matching passages. */
export interface SearchAnswer {
  /** The passages, best first. If too many match to rank them, the newest are first, and all scores are 0. */
  hits: Array<FieldMatch>;
  /** Whether there are more than the limit. */
  is_more: boolean;
}

/** The state of the search index. */
export interface SearchIndexAnswer {
  /** Number of bytes that it takes in the vault, which depends on the engine; 0 if there is no index. */
  bytes: number;
  /** Whether its version is that of this program, which otherwise rebuilds it; `None` if there is no index. */
  current?: boolean | null;
  /** Number of captures that are not indexed yet; `None` if there is no index. */
  waiting?: number | null;
}

/** A request for the state of the search index. */
export type SearchIndexRequest = Record<string, unknown>;

/**
 * A request for passages of text. What is not in the index yet is not searched: [`Vault::catch_up_search`] adds it.
 *
 * ```
 * # use runvault::{Vault, intake::ExamineOptions};
 * use runvault::vault::search::{BuildSearchIndexRequest, SearchRequest};
 *
 * # fn main() -> Result<(), Box<dyn std::error::Error>> {
 * # let directory = tempfile::tempdir()?;
 * # let vault = Vault::open_or_create(&directory.path().join("runs.vault"))?;
 * # vault.add_document(std::fs::read("examples/session.json")?, &ExamineOptions::default())?;
 * vault.run(&BuildSearchIndexRequest {})?;
 * let request = SearchRequest { words: "export CSV".to_owned(), ..SearchRequest::default() };
 * let hits = vault.run(&request)?.hits;
 * assert_eq!(hits[0].place.to_string(), "interaction 0");
 * assert_eq!(hits[0].text, "The export to CSV stops after 1,000 rows since the last update.");
 * assert_eq!(hits[0].highlights, [[4, 10], [14, 17]]);
 * # Ok(())
 * # }
 * ```
 */
export interface SearchRequest {
  /** What to return of each artifact besides its times. */
  details?: Array<Detail>;
  /** Whether to return every passage, and not only the best one of each artifact. */
  every_passage?: boolean;
  /** The names of the fields to search, such as `response`; all if empty. */
  fields?: Array<string>;
  /** The artifacts to search. */
  filter?: ArtifactFilter;
  /** Maximum number of hits. */
  limit?: number;
  /** Approximate number of columns of the text of a hit: as many characters, or half as many wide ones. */
  width?: number;
  /**
   * The words: all must be in one passage. A phrase is in quotation marks, `word*` is any word that begins so, and
   * `OR` separates alternatives.
   */
  words?: string;
}

/** Something that looks like a secret. */
export interface SecretMatch {
  /** Its first four characters, or fewer. */
  beginning: string;
  /** What it looks like, with an article, such as `an API key of OpenAI`. */
  looks_like: string;
  /** Where it is: a JSON Pointer, `line 7` and a pointer into it, or a line. */
  place: string;
  /** The name of the rule, such as `openai-api-key`. */
  rule: string;
}

/** A request to set labels on artifacts. They replace the values of the same keys. */
export interface SetLabelsRequest {
  /** The artifacts. */
  core_hashes: Array<CoreHash>;
  /** The labels, by key. */
  labels: Record<string, string>;
}

/** A request to set the note of an artifact. It replaces any other note. */
export interface SetNoteRequest {
  /** The artifact. */
  core_hash: CoreHash;
  /** The text. */
  text: string;
}

/** The result of setting a tag. */
export interface SetTagAnswer {
  /** Whether the vault changed; false if the artifact already has the tag. */
  changed: boolean;
  /** The other artifact that had the tag before, if there was one. */
  moved_from?: CoreHash | null;
}

/** A request to set a tag on an artifact. A tag that another artifact has is moved. */
export interface SetTagRequest {
  /** The artifact. */
  core_hash: CoreHash;
  /** The tag. */
  name: string;
}

/** The severity of a rule: whether breaking it rejects the artifact. */
export type Severity = "error" | "warning";

/** Everything that a vault contains about an artifact. */
export type ShowAnswer = ArtifactSummary & {
  /** Its attributes, sorted by name and value. */
  attributes: Array<AttributeSummary>;
  /** Its captures in the order in which they were added. */
  captures: Array<CaptureSummary>;
  /** The latest creation time that it states, as it is stored. */
  created_at?: string | null;
  /** The longest artifacts that extend it. */
  extended_by: Array<CoreHash>;
  /** Their lengths, in the same order. */
  extensions: Array<ExtensionSummary>;
  /** Its labels, by key. */
  labels?: Record<string, string>;
  /** Its links, outgoing ones first, by relation and target. */
  links: Array<LinkSummary>;
  /** The files of the preferred capture, if the kind has several. */
  members?: Array<MemberSummary>;
  /** Number of digests that it mentions, by role. */
  mentions: Array<MentionCount>;
  /** Its note. */
  note?: string | null;
  /** Its pin. */
  pin?: ArtifactPin | null;
  /** Whether it is pinned. */
  pinned: boolean;
  /** Its tags, by name. */
  tags: Array<string>;
};

/** A request for everything that a vault contains about an artifact. */
export interface ShowRequest {
  /** The artifact. */
  artifact: CoreHash;
}

/** The state of the signature of a capture; the preferred first. */
export type SignatureName = "verified" | "unsigned" | "unchecked" | "wrong";

/** An artifact with its size. */
export type SizedArtifact = ArtifactSummary & {
  /** The size of its captures in bytes. */
  bytes: number;
  /** Number of its captures. */
  captures: number;
};

/** A column of a view. */
export interface SqlColumnSummary {
  /** A description of its values. */
  about: string;
  /** Its name. */
  name: string;
  /** The type of its values: `number`, `real`, `text`, `time`, `hash`, `json` or `any`. */
  sort: string;
}

/** What was saved for other programs. */
export type SqlSaveAnswer = PathName & {
  /** Its size in bytes, without `metadata.json`. */
  bytes: number;
  /** The number of rows of each table, by name. */
  rows: Record<string, number>;
};

/** A view that SQL queries can use. */
export interface SqlViewSummary {
  /** A description of a row. */
  about: string;
  /** Its columns, in order. */
  columns: Array<SqlColumnSummary>;
  /** Whether it is in the vault's file, where any program that reads SQLite can use it. */
  in_file: boolean;
  /** Its name. */
  name: string;
}

/** Statistics of a vault. Stored bytes are measured and not read; removed artifacts are not counted. */
export type StatsAnswer = (EngineStatistics | null) & {
  /** Number of artifacts. */
  artifacts: number;
  /** Their size in bytes before compression. */
  blob_bytes: number;
  /** Number of blobs: each distinct file of a capture. */
  blobs: number;
  /** The time that determines the members below. */
  by: TimeBasis;
  /** The content by the values of the requested key of labels. */
  by_label?: LabelStats | null;
  /** The size of the captures in bytes, as they were received. */
  bytes: number;
  /** Number of captures. */
  captures: number;
  /** The content of each day that has any, in UTC, oldest first. */
  days: Array<Day>;
  /** Number of journal entries. */
  journal_entries: number;
  /** The content of each kind that has any, by id. */
  kinds: Array<KindTotals>;
  /** Number of labels; one that several artifacts have counts for each of them. */
  labels: number;
  /** The largest artifacts, largest first. */
  largest: Array<SizedArtifact>;
  /** The newest artifact. */
  newest?: DatedArtifact | null;
  /** Number of artifacts with a note. */
  notes: number;
  /** The oldest artifact. */
  oldest?: DatedArtifact | null;
  /** Number of pinned artifacts. */
  pins: number;
  /** Number of blobs that several captures share. */
  shared_blobs: number;
  /** Number of manual links. */
  stated_links: number;
  /** Number of tags. */
  tags: number;
  /** Number of artifacts without this time. */
  undated: number;
};

/** A request for statistics. */
export interface StatsRequest {
  /** The time that determines the oldest, the newest and the day of an artifact. */
  by?: TimeBasis;
  /** The key of labels by whose values artifacts are counted; no values are listed if there is none. */
  label?: string | null;
}

/** The class of a step. */
export type StepClass = "model" | "tool" | "work" | "error" | "output" | "control" | "term" | "member" | "content";

/** A tag and its artifact. */
export interface TagSummary {
  /** The core hash of the artifact. */
  core_hash: CoreHash;
  /** The tag. */
  name: string;
  /** The time at which the tag was set. */
  tagged_at: Timestamp;
}

/** All tags. */
export interface TagsAnswer {
  /** The tags, by name. */
  tags: Array<TagSummary>;
}

/** A request for all tags. */
export type TagsRequest = Record<string, unknown>;

/** One of the times that an artifact has. */
export type TimeBasis = "first-seen" | "last-seen" | "created" | "finished";

/** A time in UTC with milliseconds, as RFC 3339. */
export type Timestamp = string;

/** The removed artifacts. */
export interface TombstonesAnswer {
  /** The end of this page, as long as there are more. */
  next?: number | null;
  /** The artifacts in the order in which they were removed. Those that were added again are not listed. */
  removed: Array<RemovedArtifact>;
}

/** A request for the removed artifacts. */
export interface TombstonesRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: number | null;
  /** The id of a kind: only artifacts of this kind. */
  kind?: string | null;
  /** Maximum number of artifacts; unlimited if there is none. */
  limit?: number | null;
}

/** The calls so far of a run that is not finished. */
export interface UnfinishedConversationAnswer {
  /** Its calls, in the order of their requests. The step of each is its number in the run. */
  conversation: Conversation;
  /** The run; `None` if none that is not finished has the id or the name. */
  run?: UnfinishedRun | null;
}

/** A request for the calls so far of a run that is not finished. */
export interface UnfinishedConversationRequest {
  /** The directory with the calls of runs; the one beside the vault if none is given. */
  directory?: string | null;
  /** The id of the run, or its name; the run that began last if none is given. */
  run?: string | null;
}

/** A run that is not finished. */
export interface UnfinishedRun {
  /** Number of calls that have ended. */
  calls: number;
  /** Number of calls without a complete answer, or with an error status. */
  failed: number;
  /** The labels that its artifacts will have, by key. */
  labels: Record<string, string>;
  /** When its last call was made. */
  last_call_at?: Timestamp | null;
  /** The models that were asked, sorted. */
  models: Array<string>;
  /** The name that a client gave it. */
  name?: string | null;
  /** Its id, which its artifacts will have. */
  run_id: string;
  /** When it began. */
  started_at?: Timestamp | null;
  /** Whether a process records it. */
  state: UnfinishedRunState;
}

/** The state of a run that is not finished. */
export type UnfinishedRunState = "recording" | "interrupted";

/** The runs that are not finished. */
export interface UnfinishedRunsAnswer {
  /** The runs, latest begun first. A run is one of them once its first call has ended. */
  runs: Array<UnfinishedRun>;
}

/** A request for the runs that are not finished. */
export interface UnfinishedRunsRequest {
  /** The directory with their calls; the one beside the vault if none is given. */
  directory?: string | null;
  /**
   * What the runs must match. Their kinds are those that calls are stored as, their time of creation is that at which they
   * began, and they have labels; nothing else is known of them, so that other conditions and times select none.
   */
  filter?: ArtifactFilter;
}

/** A request to remove the pin of an artifact. */
export interface UnpinRequest {
  /** The artifact. */
  core_hash: CoreHash;
}

/** References to missing artifacts. */
export interface UnresolvedAnswer {
  /** Number of references to data that no format defines that were omitted from this page. */
  left_out: number;
  /** What is missing: hashes in order, then names. */
  missing: Array<MissingArtifact>;
  /** The end of this page, as long as there are more: the last hash or name that was examined. */
  next?: string | null;
}

/** A request for references to missing artifacts. Everything given must hold. */
export interface UnresolvedRequest {
  /** The end of the previous page; the first page if there is none. */
  after?: string | null;
  /** Whether to include references to data that no format defines, such as schemas. */
  all?: boolean;
  /** The id of a kind: only references of artifacts of this kind. */
  kind?: string | null;
  /** Maximum number of missing artifacts; unlimited if there is none. */
  limit?: number | null;
  /** Only references in this role, such as `reference`, or of this relation, such as `derived-from`. */
  role?: string | null;
}

/** An amount of US dollars. */
export type UsdAmount = string;

/** What was done with a value of a file. */
export type ValueOutcome = "not_mapped" | "assumed";

/** A copy beside the vault. */
export type VaultCopy = PathName & {
  /** What it is a copy of. */
  of: CopyOrigin;
};

/** The verdict on an effect. */
export type Verdict = "pending" | "inconclusive" | "verified" | "failed";

/** A capture that was read, hashed and admitted again. */
export type VerifiedCapture = CheckedSignature & {
  /** Its hash. */
  capture_hash: CaptureHash;
  /** The core hash of its bytes; `None` if they are damaged or break a rule. */
  computed_core_hash?: CoreHash | null;
  /** The core hash of its artifact. */
  core_hash: CoreHash;
  /** The damage of its bytes. If there is any, nothing else could be checked. */
  damage?: string | null;
  /** The id of the kind of its artifact. */
  kind: string;
  /** Whether its bytes are those that were stored, break no rule, and have the core hash of the artifact. */
  ok: boolean;
  /** Its size in bytes. */
  size: number;
  /** The violations of the rules, warnings included. */
  violations: Array<Violation>;
  /** Number of violations that are not listed; missing if there are none. */
  violations_omitted?: number | null;
};

/** A page of verified captures. */
export interface VerifyAnswer {
  /** The captures: by core hash, and those of an artifact in the order in which they were added. */
  captures: Array<VerifiedCapture>;
  /** The last artifact of this page; `None` if it is the last page. */
  next?: CoreHash | null;
}

/** A request to read captures of stored artifacts, to hash their bytes, and to admit them again. Changes nothing. */
export interface VerifyRequest {
  /** The last artifact of the previous page. */
  after?: CoreHash | null;
  /** Only these artifacts; all artifacts of the vault if empty. */
  artifacts?: Array<CoreHash>;
  /** Only captures with this hash. */
  capture?: CaptureHash | null;
  /** The id of a kind: only artifacts of this kind. */
  kind?: string | null;
  /** Maximum number of artifacts of this page; 100 if there is none. */
  limit?: number | null;
  /**
   * Whether captures without a signature are rejected, and, if there is a key, those whose signature has no matching
   * key. Captures with a wrong signature are always rejected.
   */
  require_signature?: boolean;
  /** Only a sample of the artifacts. */
  sample?: ArtifactSample | null;
}

/** The transcript of an artifact, or a part of it. */
export type ViewAnswer = ArtifactSummary & {
  /** The attributes of the artifact, sorted by name and value. */
  attributes: Array<AttributeSummary>;
  /** The last audit, if the artifact states terms. Its effects are the first steps of the artifact. */
  audit?: LastAudit | null;
  /** The capture that was read. */
  capture_hash: CaptureHash;
  /**
   * The conversation, if one was requested and the artifact has the bodies of its calls. The numbers of steps above are
   * those of calls then, and its texts are complete.
   */
  conversation?: Conversation | null;
  /** Whether the core hash of the artifact was computed from the bytes that were read, and is this one. */
  core_checked?: boolean;
  /** Number of steps of the artifact that record a failure, as far as it was read. */
  failed: number;
  /** The labels of the artifact, by key. */
  labels?: Record<string, string>;
  /** Number of steps of the artifact that match the request, on this page or not. */
  matching: number;
  /** The number of the first step of the next page; `None` if this is the last. */
  next?: number | null;
  /**
   * The artifacts with the steps, in their order, if the run of which this one is the first part is stored as several. The
   * numbers of the steps of each follow those of the one before it.
   */
  parts?: Array<CoreHash>;
  /** The number of the first step of the previous page; `None` if this is the first, or if pages have no limit. */
  previous?: number | null;
  /** The size of the capture in bytes. */
  size: number;
  /** The noun for a step, such as `interaction`. */
  step_noun: string;
  /** The matching steps, in order; none if it is read as a conversation. */
  steps: Array<ViewStep>;
  /** Number of steps of the artifact. */
  total: number;
};

/** A text, value or digest of a step. */
export interface ViewBody {
  /** The digest by which the content is known. The prompts and responses of other artifacts have the same. */
  digest?: Digest | null;
  /** The format of `text`. */
  format: BodyFormat;
  /** Its name, if a step has several in one role, such as `before`. */
  name?: string | null;
  /** Number of characters at the end that `text` does not contain. */
  omitted: number;
  /** Its role. */
  role: BodyRole;
  /** The size of the whole text, or of the bytes that are not text, in bytes. */
  size: number;
  /** Where the text comes from. */
  source: BodySource;
  /** The text, JSON with a line for each value; only its beginning if `omitted` is not 0. `None` if there is none. */
  text?: string | null;
}

/** A selection of steps. */
export type ViewFilter = "tools" | "errors";

/** A request for the transcript of an artifact, or for a part of it. */
export interface ViewRequest {
  /** The artifact. */
  artifact: CoreHash;
  /** One of its captures; the preferred one if there is none. */
  capture?: CaptureHash | null;
  /** Whether to compute the core hash of the artifact from the bytes that are read for the answer. */
  check_core?: boolean;
  /** Whether to read a run as a conversation instead of as steps, if it has the bodies of its calls. */
  conversation?: boolean;
  /** The number of the first step, from 0. */
  from?: number;
  /** Maximum number of steps; unlimited if there is none. */
  limit?: number | null;
  /** Maximum number of characters of each text; unlimited if there is none. */
  max_text?: number | null;
  /** Only steps of this sort. */
  only?: ViewFilter | null;
  /**
   * Whether the calls of a conversation after those of the answer may be left unread. If there is a next page, or `to` is
   * given, failures are counted, and threads listed, only as far as it was read then.
   */
  partial?: boolean;
  /** Whether to include each step as it is recorded. */
  recorded?: boolean;
  /** The number of the last step; the last one of the artifact if there is none. */
  to?: number | null;
}

/** A step of a transcript. */
export interface ViewStep {
  /** The number of the step with the request that this one answers. */
  answers?: number | null;
  /** The texts, values and digests of the step, in reading order. */
  bodies: Array<ViewBody>;
  /** The class of the type. */
  class: StepClass;
  /** The digest by which the step is known: its own hash, or the core hash of an artifact in the pack. */
  digest?: Digest | null;
  /** The duration in milliseconds that the step states or that follows from its times. */
  duration_ms?: number | null;
  /** Whether the step records a failure. */
  failed: boolean;
  /** The number of the step, from 0. */
  index: number;
  /** The step as the document records it, as JSON or text; only if it was requested. */
  recorded?: ViewBody | null;
  /** The size of the file that the step is about, in bytes. */
  size?: number | null;
  /** How the step ended or what it may do, in the words of the document, such as `skipped`. */
  status?: string | null;
  /** The time that the step states: that of its start if it states several. */
  time?: Timestamp | null;
  /** What the step is about, such as the name of a tool. */
  title?: string | null;
  /** Number of tokens in the request, if stated. */
  tokens_in?: number | null;
  /** Number of tokens in the response, if stated. */
  tokens_out?: number | null;
  /** The type as the document or its format calls it, such as `tool.request`. */
  type: string;
}

/** A broken rule. */
export interface Violation {
  /** The description. */
  message: string;
  /** The location in the document, in the notation of the format's own tools. */
  path: string;
  /** The id of the rule. */
  rule_id: string;
  /** Whether it rejects the artifact. */
  severity: Severity;
}

/** What a session and recorded calls have in common, and where they contradict each other. */
export interface WireAuditAnswer {
  /**
   * Number of calls in the run whose requests offer no tools although those of the session do, and that the session does
   * not have: programs ask for titles and decide between models with them.
   */
  auxiliary: number;
  /** The contradictions, in the order of the calls of the session, with those of calls that only the run has at the end. */
  contradictions: Array<WireContradiction>;
  /** Number of calls that are in both. */
  matched: number;
  /** The run; `None` if none in the vault has an answer of the session. Then nothing was compared. */
  run?: CoreHash | null;
  /** Number of calls in the run. */
  run_calls: number;
  /** Number of calls in the session, and in the run. */
  session_calls: number;
}

/** A request for the contradictions between the session of an agent and recorded calls. */
export interface WireAuditRequest {
  /** The run with the recorded calls. Without it, that run is taken which has the most answers of the session. */
  run?: CoreHash | null;
  /** The agent session. */
  session: CoreHash;
}

/** A contradiction. */
export interface WireContradiction {
  /** What differs. */
  kind: WireContradictionKind;
  /** What each of the two says. */
  message: string;
  /** The number of the step with the request in the run, from 0. */
  run_step?: number | null;
  /** The number of the record with the call in the session, from 0. */
  session_step?: number | null;
}

/** What a session and a recorded call say differently. */
export type WireContradictionKind = "answer" | "tokens" | "message" | "tool-result" | "only-in-session" | "only-in-run";

/** The requests and answers of all operations. */
export interface Operations {
  /** Add a link between two artifacts manually. */
  "add-link": { request: AddLinkRequest; answer: AnnotateAnswer };
  /** Compare the answers to the same prompts. */
  "answers": { request: AnswersRequest; answer: AnswersAnswer };
  /** List the names of the attributes that artifacts have. */
  "attribute-names": { request: AttributeNamesRequest; answer: AttributeNamesAnswer };
  /** List the values of an attribute. */
  "attribute-values": { request: AttributeValuesRequest; answer: AttributeValuesAnswer };
  /** Audit runs against a contract. */
  "audit": { request: AuditRequest; answer: AuditAnswer };
  /** Copy the vault to another file and check the copy. */
  "backup": { request: BackupRequest; answer: BackupAnswer };
  /** Build the search index, or rebuild it. */
  "build-search-index": { request: BuildSearchIndexRequest; answer: BuildSearchIndexAnswer };
  /** List the captures of an artifact. */
  "captures": { request: CapturesRequest; answer: CapturesAnswer };
  /** Check the journal, and compare the catalog with it. */
  "check-journal": { request: CheckJournalRequest; answer: CheckJournalAnswer };
  /** Copy everything in the vault into another one. */
  "copy": { request: CopyRequest; answer: CopyAnswer };
  /** Count artifacts by day. */
  "days": { request: DaysRequest; answer: DaysAnswer };
  /** Compare two artifacts and show where they diverge. */
  "diff": { request: DiffRequest; answer: DiffAnswer };
  /** Resolve the first digits of a digest that artifacts mention. */
  "digests": { request: DigestsRequest; answer: DigestsAnswer };
  /** Remove the search index. */
  "drop-search-index": { request: DropSearchIndexRequest; answer: DropSearchIndexAnswer };
  /** Count runs by the most frequent values of attributes and labels. */
  "facets": { request: FacetsRequest; answer: FacetsAnswer };
  /** Find artifacts by kind, mention, attribute, signature, note, tag or time. */
  "find": { request: FindRequest; answer: FindAnswer };
  /** Apply a retention policy. */
  "forget": { request: ForgetRequest; answer: ForgetAnswer };
  /** List traces and run packs of one run that diverge. */
  "forks": { request: ForksRequest; answer: ForksAnswer };
  /** List the forks of some artifacts. */
  "forks-of": { request: ForksOfRequest; answer: ForksOfAnswer };
  /** List journal entries. */
  "journal": { request: JournalRequest; answer: JournalAnswer };
  /** Show the last journal entry. */
  "journal-head": { request: JournalHeadRequest; answer: JournalHead };
  /** List the keys of labels. */
  "label-keys": { request: LabelKeysRequest; answer: LabelKeysAnswer };
  /** List the values of a key of labels. */
  "label-values": { request: LabelValuesRequest; answer: LabelValuesAnswer };
  /** List the labels of an artifact. */
  "labels": { request: LabelsRequest; answer: LabelsAnswer };
  /** List the links of an artifact. */
  "links": { request: LinksRequest; answer: LinksAnswer };
  /** List runs and other artifacts with their measurements. */
  "list": { request: ListRequest; answer: ListAnswer };
  /** Find what is similar to conditions that no artifact matches. */
  "near": { request: NearRequest; answer: NearAnswer };
  /** Show the note of an artifact. */
  "note": { request: NoteRequest; answer: NoteAnswer };
  /** Find the shortest path of links between two artifacts. */
  "path": { request: PathRequest; answer: PathAnswer };
  /** Protect an artifact from removal. */
  "pin": { request: PinRequest; answer: AnnotateAnswer };
  /** List pinned artifacts. */
  "pins": { request: PinsRequest; answer: PinsAnswer };
  /** Reclaim disk space. */
  "reclaim": { request: ReclaimRequest; answer: ReclaimAnswer };
  /** Show what reclaiming disk space would remove. */
  "reclaimable": { request: ReclaimableRequest; answer: ReclaimableAnswer };
  /** List the recordings in which a prompt can be looked up. */
  "recordings": { request: RecordingsRequest; answer: RecordingsAnswer };
  /** Remove artifacts. */
  "remove": { request: RemoveRequest; answer: RemoveAnswer };
  /** Remove labels from artifacts. */
  "remove-labels": { request: RemoveLabelsRequest; answer: AnnotateAnswer };
  /** Remove a manually added link. */
  "remove-link": { request: RemoveLinkRequest; answer: AnnotateAnswer };
  /** Remove an artifact's note. */
  "remove-note": { request: RemoveNoteRequest; answer: AnnotateAnswer };
  /** Remove a tag. */
  "remove-tag": { request: RemoveTagRequest; answer: AnnotateAnswer };
  /** Look up the recorded response to a prompt. */
  "replay": { request: ReplayRequest; answer: ReplayAnswer };
  /** Resolve a hash, a prefix, a tag or a run id. */
  "resolve": { request: ResolveRequest; answer: ResolveAnswer };
  /** List the recorded responses of a session or a run. */
  "responses": { request: ResponsesRequest; answer: ResponsesAnswer };
  /** List or explain validation rules. */
  "rules": { request: RulesRequest; answer: RulesAnswer };
  /** Count runs, failures, tokens, latency and costs by model, tool, agent, label or day. */
  "run-stats": { request: RunStatsRequest; answer: RunStatsAnswer };
  /** Search the text of artifacts. */
  "search": { request: SearchRequest; answer: SearchAnswer };
  /** Return the state of the search index. */
  "search-index": { request: SearchIndexRequest; answer: SearchIndexAnswer };
  /** Set labels on artifacts. */
  "set-labels": { request: SetLabelsRequest; answer: AnnotateAnswer };
  /** Set an artifact's note. */
  "set-note": { request: SetNoteRequest; answer: AnnotateAnswer };
  /** Set a tag on an artifact. */
  "set-tag": { request: SetTagRequest; answer: SetTagAnswer };
  /** Describe an artifact. */
  "show": { request: ShowRequest; answer: ShowAnswer };
  /** Show counts, disk usage and growth. */
  "stats": { request: StatsRequest; answer: StatsAnswer };
  /** List tags. */
  "tags": { request: TagsRequest; answer: TagsAnswer };
  /** List removed artifacts. */
  "tombstones": { request: TombstonesRequest; answer: TombstonesAnswer };
  /** Read the calls so far of a run that is being recorded. */
  "unfinished-conversation": { request: UnfinishedConversationRequest; answer: UnfinishedConversationAnswer };
  /** List the runs that are being recorded. */
  "unfinished-runs": { request: UnfinishedRunsRequest; answer: UnfinishedRunsAnswer };
  /** Unpin an artifact. */
  "unpin": { request: UnpinRequest; answer: AnnotateAnswer };
  /** List references to missing artifacts. */
  "unresolved": { request: UnresolvedRequest; answer: UnresolvedAnswer };
  /** Verify stored artifacts. */
  "verify": { request: VerifyRequest; answer: VerifyAnswer };
  /** Read an artifact as a transcript. */
  "view": { request: ViewRequest; answer: ViewAnswer };
  /** Compare the session of an agent with the recorded calls of models. */
  "wire-audit": { request: WireAuditRequest; answer: WireAuditAnswer };
}
