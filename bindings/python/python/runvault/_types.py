"""Generated from docs/api.json by generate_types.py."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict


class AddLinkRequest(TypedDict):
    """A request to add a manual link. It replaces the note of an existing link."""

    note: NotRequired[str | None]
    """The reason. A blank one is as none."""
    relation: str
    """The relation."""
    source: CoreHash
    """The source artifact."""
    target: CoreHash
    """The target artifact."""


class AddedDocument(TypedDict):
    """What was done with a document that was added."""

    attachments: list[CoreHash]
    """The files beside it that it refers to and that are stored with it."""
    continues: NotRequired[CoreHash | None]
    """The artifact that the document continues, if it is the rest of one: the stored artifact consists of both."""
    core_hash: NotRequired[CoreHash | None]
    """The artifact, unless it was rejected. It is also stated if it was rejected because it was removed before."""
    key_id: NotRequired[str | None]
    """The key id that it states."""
    kind: NotRequired[str | None]
    """The id of its kind, if it was recognized."""
    path: str
    """The name of the document."""
    path_bytes: NotRequired[str | None]
    """The bytes of the name, as hex digits, if it is a path that is not UTF-8."""
    secrets: NotRequired[list[SecretMatch]]
    """What looks like a secret in it, if that was looked for; missing if nothing does."""
    signature: NotRequired[str | None]
    """The result of checking its signature, if it is signed: `verified` or `unchecked`."""
    violations: list[Violation]
    """Its violations, including warnings."""
    violations_omitted: int
    """Number of further violations."""
    outcome: DocumentOutcome
    """What was done."""
    recorded: bool
    """Whether the time at which it was seen was recorded, if it was stored before and was not added again."""


class AnnotateAnswer(TypedDict):
    """The result of a change to an annotation."""

    changed: bool
    """Whether the vault changed; false if it already was as requested."""


class AnswersAnswer(TypedDict):
    """The answers to prompts."""

    is_more: bool
    """Whether there are more artifacts than were read."""
    prompts: list[PromptAnswers]
    """The prompts, by the time of their first answer."""
    read: int
    """Number of artifacts that were read."""
    unanimous: int
    """Number of prompts with several answers that are all the same. They are listed only on request, or if one was requested."""


class AnswersRequest(TypedDict):
    """A request for the answers to a prompt, or for the prompts of a set of artifacts that were answered differently."""

    artifacts: NotRequired[list[CoreHash]]
    """The only artifacts that can match; any if empty."""
    filter: NotRequired[ArtifactFilter]
    """The artifacts whose answers are compared."""
    limit: NotRequired[int | None]
    """Maximum number of artifacts that are read, last seen first; unlimited if there is none."""
    max_text: NotRequired[int | None]
    """Maximum number of characters of each text; unlimited if there is none."""
    prompt: NotRequired[Digest | None]
    """The prompt; every prompt with different answers if there is none."""
    repeated: NotRequired[bool]
    """Whether every prompt with several answers is returned, also if they are all the same: the last texts of requests, and requests as a whole."""


class ArtifactDetails(TypedDict):
    """Data of an artifact in a list."""

    attributes: NotRequired[list[AttributeSummary] | None]
    """Its attributes, sorted by name and value; only on request."""
    captures: NotRequired[list[CaptureSummary] | None]
    """Its captures in the order in which they were added; only on request."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time that it states."""
    labels: NotRequired[dict[str, str] | None]
    """Its labels, by key; only on request."""
    note: NotRequired[str | None]
    """Its note; only on request, and if it has one."""
    pinned: NotRequired[bool | None]
    """Whether it is pinned; only on request."""
    run_id: NotRequired[str | None]
    """The id of the run that it records, if it states one."""
    tags: NotRequired[list[str] | None]
    """Its tags, by name; only on request."""


class ArtifactFilter(TypedDict):
    """A filter of artifacts. Everything given must hold."""

    conditions: NotRequired[list[FindCondition]]
    """The conditions."""
    digits: NotRequired[str | None]
    """The first digits of the core hash; any if there are none."""
    kinds: NotRequired[list[str]]
    """The ids of the kinds; any if empty."""
    period: NotRequired[FindPeriod | None]
    """The period of one of the times of an artifact. Artifacts without that time do not match."""


class ArtifactMatchIndex(TypedDict):
    """A match of a condition."""

    index: int
    """The number, from 0."""
    unit: str
    """The unit, such as `step`."""
    digest: Digest
    """The digest."""
    role: str
    """The role of the digest."""


class ArtifactMatchPointer(TypedDict):
    """A match of a condition."""

    pointer: str
    """A JSON Pointer; in JSON Lines, `line 7` and a pointer into it."""
    digest: Digest
    """The digest."""
    role: str
    """The role of the digest."""


class ArtifactMatchHash(TypedDict):
    """A match of a condition."""

    hash: Digest
    """The hash."""


class ArtifactMatchName(TypedDict):
    """A match of a condition."""

    name: str
    """The name."""
    value: str
    """The value."""


class ArtifactMatchSignature(TypedDict):
    """A match of a condition."""

    capture_hash: NotRequired[CaptureHash | None]
    """The capture, if it is signed."""
    key_id: NotRequired[str | None]
    """The key id that the capture states."""
    signature: SignatureName
    """The state of the signature."""


class ArtifactMatchNote(TypedDict):
    """A match of a condition."""

    note: str
    """The full text."""


class ArtifactMatchTag(TypedDict):
    """A match of a condition."""

    tag: str
    """The tag."""


class ArtifactMatchPinned(TypedDict):
    """A match of a condition."""

    pinned: bool
    """True."""


class ArtifactMatchKey(TypedDict):
    """A match of a condition."""

    key: str
    """The key."""
    value: str
    """The value."""


class ArtifactName(TypedDict):
    """An artifact by its core hash and kind."""

    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The id of its kind."""


class ArtifactPin(TypedDict):
    """The pin of an artifact."""

    note: NotRequired[str | None]
    """The reason, if one was given."""
    pinned_at: Timestamp
    """The time at which it was pinned."""


class ArtifactSample(TypedDict):
    """A selection of artifacts to check."""

    percent: float
    """Percentage of the artifacts."""
    seed: NotRequired[int]
    """The seed, which determines the selected artifacts of a vault."""


class ArtifactSummary(TypedDict):
    """An artifact."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""


class AttributeNamesAnswer(TypedDict):
    """The names of attributes."""

    names: list[str]
    """The names, sorted."""


class AttributeSummary(TypedDict):
    """A named value that is derived from an artifact."""

    name: str
    """The name."""
    value: str
    """The value."""


class AttributeValuesAnswer(TypedDict):
    """The values of an attribute."""

    values: list[str]
    """The values, sorted."""


class AttributeValuesRequest(TypedDict):
    """A request for the values of an attribute."""

    limit: NotRequired[int | None]
    """Maximum number of values; unlimited if there is none."""
    name: str
    """The name of the attribute."""
    prefix: NotRequired[str]
    """The beginning of the values; all values if it is empty."""


class AuditAnswer(TypedDict):
    """The audits of runs against a contract."""

    contract: CoreHash
    """The contract."""
    effects: int
    """Number of effects that it declares."""
    next: NotRequired[CoreHash | None]
    """Where the next page begins; `None` if this is the last one."""
    runs: list[RunAudit]
    """The audit of each run, the latest first: by the creation time that it states, or by its first addition if it states none."""


class AuditFinding(TypedDict):
    """A violation of a contract, or something that could not be checked."""

    message: str
    """The description."""
    path: str
    """The location in the document, in the notation of the format's own tools."""
    rule_id: str
    """The id of the rule."""
    severity: Severity
    """Whether it rejects the artifact."""
    contract: CoreHash
    """The contract."""
    run: CoreHash
    """The run."""
    run_id: NotRequired[str | None]
    """The id that the run states, if it states one."""


class AuditRequest(TypedDict):
    """A request for an audit."""

    after: NotRequired[CoreHash | None]
    """The last run of the previous page; the first page if there is none."""
    contract: CoreHash
    """The contract."""
    limit: NotRequired[int | None]
    """Maximum number of runs; unlimited if there is none."""
    run: NotRequired[CoreHash | None]
    """The run; every run that the contract governs if there is none."""


class BackupAnswer(TypedDict):
    """A completed backup. It passed the integrity check of the database and the hash check of the sampled blobs, and its journal ends as the vault's does."""

    path: str
    """The path. Bytes that are not UTF-8 are replaced by U+FFFD."""
    path_bytes: NotRequired[str | None]
    """All bytes of the path as lowercase hex digits; missing if it is UTF-8."""
    artifacts: int
    """Number of artifacts."""
    blobs: int
    """Number of blobs."""
    blobs_checked: int
    """Number of blobs that were read back and hashed again."""
    bytes: int
    """Its size in bytes."""
    captures: int
    """Number of captures."""
    findings: int
    """Number of breaks in the journal's chain and of differences between the catalog and the journal. The copy is exact, so the vault has the same."""
    first_findings: list[FindingSummary]
    """The first 10 of them."""
    journal_entries: int
    """Number of journal entries."""
    journal_head: Digest
    """The digest of the whole journal."""


class BackupRequest(TypedDict):
    """A request to copy the current state of a vault to a file, and to check the copy. Others can read and write during the backup."""

    force: NotRequired[bool]
    """Whether an existing file is replaced."""
    path: str
    """The path of the file, on the machine of the vault."""
    sample: NotRequired[float]
    """Percentage of the blobs that are read back and hashed again; everything else is always checked."""


class BodySourceRecorded(TypedDict):
    """Where the text of a body comes from."""

    type: Literal['recorded']


class BodySourceResolved(TypedDict):
    """Where the text of a body comes from."""

    core_hash: CoreHash
    """The other artifact."""
    kind: str
    """The id of its kind."""
    place: NotRequired[PlaceSummary | None]
    """The location in it, if it is not all of it."""
    type: Literal['resolved']


class BodySourceNotRecorded(TypedDict):
    """Where the text of a body comes from."""

    type: Literal['not-recorded']


class BuildSearchIndexAnswer(TypedDict):
    """A search index that was built."""

    bytes: int
    """Number of bytes that the index takes in the vault, which depends on the engine."""
    captures: int
    """Number of captures."""
    damaged: list[CoreHash]
    """The artifacts of captures with damaged bytes, which are in the index without passages."""
    damaged_captures: int
    """Number of damaged captures."""


class CaptureSummary(TypedDict):
    """A capture of an artifact."""

    added_at: Timestamp
    """The time at which it was added."""
    capture_hash: CaptureHash
    """Its hash."""
    key_id: NotRequired[str | None]
    """The key id that it states."""
    preferred: bool
    """Whether it is the preferred capture of the artifact."""
    seen_at: Timestamp
    """The time at which it was last added or seen again."""
    signature: SignatureName
    """The state of its signature."""
    size: int
    """Its size in bytes."""
    source_path: NotRequired[str | None]
    """The path that it was read from when it was first added, if that was recorded."""
    violations: list[Violation]
    """The warnings that were reported at its admission."""


class CapturesAnswer(TypedDict):
    """The captures of an artifact."""

    captures: list[CaptureSummary]
    """The captures in the order in which they were added."""
    count: int
    """Number of all captures of the artifact."""
    next: NotRequired[CaptureHash | None]
    """Where the next page begins; `None` if this is the last one."""


class CapturesRequest(TypedDict):
    """A request for the captures of an artifact."""

    after: NotRequired[CaptureHash | None]
    """The last capture of the previous page; the first page if there is none."""
    artifact: CoreHash
    """The artifact."""
    limit: NotRequired[int | None]
    """Maximum number of captures; unlimited if there is none."""


class CatalogCheck(TypedDict):
    """The result of comparing a catalog with its journal: the number of rows that agree, and the differences."""

    artifacts: int
    """Artifacts."""
    captures: int
    """Captures."""
    labels: int
    """Labels."""
    links: int
    """Manual links."""
    notes: int
    """Notes."""
    pins: int
    """Pins."""
    signatures: int
    """Number of captures with a signature."""
    tags: int
    """Tags."""
    tombstones: int
    """Tombstones."""
    findings: list[FindingSummary]
    """Defects of the journal, and differences between it and the catalog."""


class CatalogCounts(TypedDict):
    """Counts of the catalog rows that agree with the journal."""

    artifacts: int
    """Artifacts."""
    captures: int
    """Captures."""
    labels: int
    """Labels."""
    links: int
    """Manual links."""
    notes: int
    """Notes."""
    pins: int
    """Pins."""
    signatures: int
    """Number of captures with a signature."""
    tags: int
    """Tags."""
    tombstones: int
    """Tombstones."""


class ChangedValue(TypedDict):
    """A difference between two values."""

    ephemeral: bool
    """Whether it varies between identical runs."""
    new: NotRequired[JsonValue]
    """The new value, unless it was removed."""
    old: NotRequired[JsonValue]
    """The old value, unless it was added."""
    pointer: str
    """The location as a JSON Pointer into the part; elements of arrays have their old index, inserted ones their new index."""
    spelling: bool
    """Whether both have the same canonical form."""


class CheckJournalAnswer(TypedDict):
    """The result of checking a journal."""

    catalog: NotRequired[CatalogCheck | None]
    """The comparison with the catalog, if it was requested."""
    defect: NotRequired[str | None]
    """A description of the first defect of the chain."""
    defect_entry: NotRequired[int | None]
    """The number of the entry with that defect."""
    found: NotRequired[int | None]
    """The entry after which the recorded chain value was the head, whichever number was recorded with it."""
    head: JournalHead
    """The last entry, as stored."""
    ok: bool
    """Whether all entries chain, the recorded chain value is a former head, and the catalog matches the journal, as far as that was requested."""
    since: NotRequired[int | None]
    """The entry after which the recorded chain value was the head; 0 is before the first. `None` if it never was, or not after the recorded entry."""


class CheckJournalRequest(TypedDict):
    """A request to recompute the chain of the journal from the first entry to the last. Reads no stored bytes."""

    catalog: NotRequired[bool]
    """Whether to also compare the artifacts, captures, tags, notes, pins, manual links, tombstones and signatures in the catalog with the journal, in both directions."""
    since: NotRequired[Digest | None]
    """A chain value that was recorded earlier as the head of the journal: whether it is the one of an entry, and so no entry up to that one was changed since."""
    since_seq: NotRequired[int | None]
    """The number of the entry that was recorded with it, if one was."""


class CheckedDocument(TypedDict):
    """A document that was examined and not added."""

    attachments: list[CoreHash]
    """The files beside it that it refers to and that are stored with it."""
    continues: NotRequired[CoreHash | None]
    """The artifact that the document continues, if it is the rest of one: the stored artifact consists of both."""
    core_hash: NotRequired[CoreHash | None]
    """The artifact, unless it was rejected. It is also stated if it was rejected because it was removed before."""
    key_id: NotRequired[str | None]
    """The key id that it states."""
    kind: NotRequired[str | None]
    """The id of its kind, if it was recognized."""
    path: str
    """The name of the document."""
    path_bytes: NotRequired[str | None]
    """The bytes of the name, as hex digits, if it is a path that is not UTF-8."""
    secrets: NotRequired[list[SecretMatch]]
    """What looks like a secret in it, if that was looked for; missing if nothing does."""
    signature: NotRequired[str | None]
    """The result of checking its signature, if it is signed: `verified` or `unchecked`."""
    violations: list[Violation]
    """Its violations, including warnings."""
    violations_omitted: int
    """Number of further violations."""
    ok: bool
    """Whether it would be admitted."""


class CheckedSignature(TypedDict):
    """The signature of a capture."""

    key_id: NotRequired[str | None]
    """The key id that the document states; `None` if there is none, or a very long one. The signature does not cover the id: it is reliable only if the signature is verified."""
    signature: NotRequired[SignatureName]
    """The result of checking it."""


class ComparedArtifact(TypedDict):
    """A stored artifact to compare."""

    capture_hash: NotRequired[CaptureHash | None]
    """The capture; if there is none, the preferred one, and those of the other parts of the run of which the artifact is the first part."""
    core_hash: CoreHash
    """The artifact."""


class ComparedSide(TypedDict):
    """A compared artifact."""

    capture_hash: NotRequired[CaptureHash | None]
    """The capture; `None` if it is not stored."""
    core_hash: CoreHash
    """Its core hash."""
    name: str
    """Its name: as given, or its core hash."""
    name_bytes: NotRequired[str | None]
    """The bytes of the name, as hex digits, if it is a path that is not UTF-8."""
    parts: NotRequired[list[CoreHash]]
    """The artifacts that were compared, in their order, if the run of which this one is the first part is stored as several."""


class Conversation(TypedDict):
    """A conversation."""

    calls: list[ConversationCall]
    """The calls in their order."""
    threads: list[ConversationThread]
    """The threads, in the order of their first calls."""


class ConversationCall(TypedDict):
    """A call of a model in a conversation."""

    answer_id: NotRequired[str | None]
    """The id of the answer, if the API or the program that records it has one."""
    answers: list[ConversationMessage]
    """The answers: one, or several if several were asked for."""
    duration_ms: NotRequired[int | None]
    """The time until all of the answer had arrived, in milliseconds, if recorded."""
    endpoint: str
    """The name of the request in the API of the provider."""
    error: NotRequired[str | None]
    """Why there is no answer, or only its beginning."""
    finish_reason: NotRequired[str | None]
    """Why the answer ended, in the word of the API."""
    messages: list[ConversationMessage]
    """The other messages of the request, without the results of calls of tools that the thread has."""
    model: str
    """The model that was asked."""
    parameters: dict[str, str]
    """The parameters of the request, as JSON, by name."""
    prompt_hash: NotRequired[Digest | None]
    """The digest by which other artifacts with the same prompt are found, if it is recorded."""
    provider: str
    """The provider of the model."""
    repeated: int
    """Number of messages of the request that are those of the earlier calls of its thread."""
    requested_at: NotRequired[Timestamp | None]
    """When it was asked, if recorded."""
    step: int
    """The number of the step with the request in the artifact, from 0."""
    thread: int
    """The number of its thread, from 0."""
    tokens_in: NotRequired[int | None]
    """Number of tokens in the request, if stated."""
    tokens_out: NotRequired[int | None]
    """Number of tokens in the answer, if stated."""
    tools: list[str]
    """The names of the tools that were offered."""


class ConversationMessage(TypedDict):
    """A message of a conversation."""

    parts: list[MessagePart]
    """What it consists of, in reading order."""
    role: MessageRole
    """Who says it."""


class ConversationThread(TypedDict):
    """Calls that continue each other."""

    calls: int
    """Number of its calls."""
    parent: NotRequired[int | None]
    """The thread with which it has the first messages in common, more than instructions."""


class CopiedAnnotations(TypedDict):
    """The number of tags, notes, labels, pins and manual links by outcome."""

    kept: int
    """Those that were not set, because the other vault has another one in their place, or not the artifact."""
    present: int
    """Those that the other vault already had."""
    set: int
    """Those that were set."""


class CopyAnswer(TypedDict):
    """What was copied, now or before an interruption that this copy continued."""

    path: str
    """The path. Bytes that are not UTF-8 are replaced by U+FFFD."""
    path_bytes: NotRequired[str | None]
    """All bytes of the path as lowercase hex digits; missing if it is UTF-8."""
    annotations: CopiedAnnotations
    """The annotations that were merged; none in a verbatim copy, which has all of them."""
    bytes: int
    """Their size in bytes."""
    captures: int
    """Number of captures that were copied now."""
    first_rejected: list[RejectedCapture]
    """The first 10 of them."""
    is_complete: bool
    """Whether all of it was copied. If not, the copy was interrupted, and copying again continues it."""
    journal_entries: int
    """Number of entries of the other vault's journal."""
    journal_head: Digest
    """The digest of that journal."""
    mode: CopyMode
    """How it was copied."""
    present: int
    """Number of captures that the other vault already had."""
    rejected: int
    """Number of captures that were not copied, because they break rules or were removed from the other vault."""


class CopyRequest(TypedDict):
    """A request to copy everything in a vault into another one."""

    actor: NotRequired[str | None]
    """The name that the other vault's journal records for entries that are made there."""
    allow_removed: NotRequired[bool]
    """Whether artifacts that were removed from the other vault before are added again."""
    to: str
    """The path or URL of the other vault, which is created if it does not exist."""
    without_source_paths: NotRequired[bool]
    """Whether the paths that captures were read from are left out where captures are added. An empty vault adopts the journal as it is, with the paths that it records."""


class Counts(TypedDict):
    """Number of parts by type of change."""

    changed: int
    """In both, with different content."""
    inserted: int
    """Only in the second, unless entirely ephemeral."""
    moved: int
    """In both, in different positions."""
    removed: int
    """Only in the first, unless entirely ephemeral."""
    same: int
    """In both and equal, or with only ephemeral differences."""


class DatedArtifact(TypedDict):
    """An artifact with a time."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    at: Timestamp
    """The time."""


class Day(TypedDict):
    """The content of one day."""

    artifacts: int
    """Number of artifacts."""
    bytes: int
    """The size of the captures in bytes."""
    captures: int
    """Number of captures. Of times that artifacts state, those of these artifacts; otherwise, a capture belongs to the day on which it was itself added or last seen."""
    date: str
    """The day, in UTC."""


class DayCount(TypedDict):
    """The number of artifacts on a day."""

    artifacts: int
    """Number of artifacts."""
    date: str
    """The day."""


class DaysAnswer(TypedDict):
    """The number of artifacts on each day."""

    days: list[DayCount]
    """The days, oldest first, without gaps."""


class DaysRequest(TypedDict):
    """A request for the number of artifacts on each of some days."""

    by: NotRequired[TimeBasis]
    """The time that determines the day of an artifact, in UTC."""
    days: int
    """Number of days; at most 366 are counted."""
    filter: NotRequired[ArtifactFilter]
    """What the artifacts must match. Its period is not used."""
    last: str
    """The last day."""


class DiffAnswer(TypedDict):
    """The differences between two artifacts."""

    changes: NotRequired[list[PartChange] | None]
    """The changes in the order of the artifacts, if they were requested."""
    counts: Counts
    """Number of parts by type of change."""
    different: bool
    """Whether there are differences."""
    first_divergence: NotRequired[PartChange | None]
    """The first change that is not ephemeral."""
    kind: str
    """The id of the kind of both."""
    next: NotRequired[int | None]
    """The end of this page; none if it is the last one."""
    one: ComparedSide
    """The first artifact."""
    other: ComparedSide
    """The second artifact."""
    same_core: bool
    """Whether the core hashes are equal."""


class DiffRequest(TypedDict):
    """A request for the differences between two stored artifacts of one kind."""

    after: NotRequired[int | None]
    """The end of the previous page; the first page if there is none."""
    all: NotRequired[bool]
    """Whether to include values that vary between identical runs, and values with the same canonical form."""
    extent: NotRequired[DiffExtent]
    """Which changes to return."""
    ignore: NotRequired[list[str]]
    """Values that are not compared: JSON Pointers into steps and other parts, in which `*` is any name or index."""
    limit: NotRequired[int | None]
    """Maximum number of changes; unlimited if there is none."""
    one: ComparedArtifact
    """The first artifact."""
    other: ComparedArtifact
    """The second artifact."""


class DigestsAnswer(TypedDict):
    """Mentioned digests."""

    digests: list[Digest]
    """The digests, sorted; at most 20. A complete digest is returned whether it is mentioned or not."""
    removed: NotRequired[RemovedHash | None]
    """The last removal of an artifact or a capture whose hash begins with the digits; `None` if something in the vault has such a hash."""


class DigestsRequest(TypedDict):
    """A request for the mentioned digests that begin with given digits."""

    group: NotRequired[str | None]
    """The group of the role in which they are mentioned, such as `prompt`; any if there is none."""
    prefix: DigestPrefix
    """The first digits, or all."""


class DistinctAnswer(TypedDict):
    """An answer, with every time at which it was given. What several recordings of one run state was given once."""

    count: int
    """Number of times that it was given."""
    failed: bool
    """Whether the call failed, so that there was no response."""
    given: list[GivenAnswer]
    """Where and when it was given, by time."""
    response: ViewBody
    """The text, or the message of the error."""


class DropSearchIndexAnswer(TypedDict):
    """The result of removing the search index."""

    changed: bool
    """Whether there was an index."""


class EffectAudit(TypedDict):
    """The audit of an effect."""

    because: str
    """The reason."""
    contract: CoreHash
    """The contract."""
    effect: str
    """The name of the effect."""
    evidence: NotRequired[str | None]
    """The type of the evidence that it declares."""
    idempotency: NotRequired[str | None]
    """The idempotency that it declares."""
    mode: NotRequired[str | None]
    """The mode of that reference."""
    place: NotRequired[str | None]
    """The location of the deciding value, in words; `None` if the effect is pending."""
    run: CoreHash
    """The run."""
    run_id: NotRequired[str | None]
    """The id that the run states, if it states one."""
    target: str
    """The IO reference that it targets."""
    unsafe_to_retry: bool
    """Whether it is not idempotent and states neither a nonce nor a reason."""
    value: NotRequired[JsonValue]
    """The deciding value, unless it is a list or an object."""
    verdict: Verdict
    """The verdict."""


class EngineStatistics(TypedDict):
    """The size of what an engine stores, and of its indexes."""

    dictionaries: int
    """Number of dictionaries."""
    dictionary_bytes: int
    """Their size in bytes."""
    differences: int
    """Number of blobs that are stored as deltas."""
    file_bytes: int
    """The size of the vault's file in bytes."""
    free_bytes: int
    """The free part of that, in bytes."""
    mentions: int
    """Number of mentioned digests in the index; the same digest in two captures counts twice."""
    search_bytes: NotRequired[int | None]
    """The size of the full-text search index in bytes; `None` if there is none."""
    stored_bytes: int
    """The size of the blobs in bytes after compression, with the digests that were stripped from them and without the dictionaries."""


class ErasureSummary(TypedDict):
    """What remains of removed artifacts in the vault's files and beside them."""

    complete: bool
    """Whether no byte of them is left in the vault's files, except bytes that other artifacts contain too."""
    copies: list[VaultCopy]
    """Copies beside the vault that contain, or may contain, their bytes."""
    remnants: list[RemnantSummary]
    """The parts of the vault's files that contain, or may contain, their bytes until space is reclaimed; empty if the erasure is complete."""


class ExaminedDocument(TypedDict):
    """A document that was examined, with what was found out about it and what was done with it."""

    attachments: list[CoreHash]
    """The files beside it that it refers to and that are stored with it."""
    continues: NotRequired[CoreHash | None]
    """The artifact that the document continues, if it is the rest of one: the stored artifact consists of both."""
    core_hash: NotRequired[CoreHash | None]
    """The artifact, unless it was rejected. It is also stated if it was rejected because it was removed before."""
    key_id: NotRequired[str | None]
    """The key id that it states."""
    kind: NotRequired[str | None]
    """The id of its kind, if it was recognized."""
    path: str
    """The name of the document."""
    path_bytes: NotRequired[str | None]
    """The bytes of the name, as hex digits, if it is a path that is not UTF-8."""
    secrets: NotRequired[list[SecretMatch]]
    """What looks like a secret in it, if that was looked for; missing if nothing does."""
    signature: NotRequired[str | None]
    """The result of checking its signature, if it is signed: `verified` or `unchecked`."""
    violations: list[Violation]
    """Its violations, including warnings."""
    violations_omitted: int
    """Number of further violations."""


class ExtensionSummary(TypedDict):
    """An artifact that extends another one of its kind."""

    core_hash: CoreHash
    """Its core hash."""
    length: NotRequired[int | None]
    """Its length, if it is known."""
    unit: str
    """The unit of the length, such as `record`."""


class FacetsAnswer(TypedDict):
    """The number of runs that match a filter."""

    counts: NotRequired[RunCounts | None]
    """The counts of the runs; missing if there are more recordings than the request permits."""
    recordings: int
    """Number of recordings: a run can have several."""


class FacetsRequest(TypedDict):
    """A request for the number of runs that match a filter, and for the most frequent values of some attributes and of labels among them. The recordings of a row of a list are one run."""

    attributes: NotRequired[list[str]]
    """The names of the attributes whose values are counted."""
    filter: NotRequired[ArtifactFilter]
    """What the recordings must match. If it names no kinds, they are all that record what an agent or a model did."""
    limit: NotRequired[int | None]
    """Maximum number of values of each attribute, and of labels; unlimited if there is none."""
    max_recordings: NotRequired[int | None]
    """If more recordings match, their runs are not counted, which takes long: the answer then has the number of recordings alone."""


class FieldMatch0(TypedDict):
    """A matching passage of a field."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: NotRequired[list[AttributeSummary] | None]
    """Its attributes, sorted by name and value; only on request."""
    captures: NotRequired[list[CaptureSummary] | None]
    """Its captures in the order in which they were added; only on request."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time that it states."""
    labels: NotRequired[dict[str, str] | None]
    """Its labels, by key; only on request."""
    note: NotRequired[str | None]
    """Its note; only on request, and if it has one."""
    pinned: NotRequired[bool | None]
    """Whether it is pinned; only on request."""
    run_id: NotRequired[str | None]
    """The id of the run that it records, if it states one."""
    tags: NotRequired[list[str] | None]
    """Its tags, by name; only on request."""
    index: int
    """The number, from 0."""
    unit: str
    """The unit, such as `step`."""
    capture_hash: CaptureHash
    """The capture that the passage was read from."""
    cut_after: bool
    """Whether the passage continues after the text."""
    cut_before: bool
    """Whether the passage continues before the text."""
    field: str
    """The name of the field."""
    highlights: list[list[int]]
    """The matches in the text: first character and end of each, counted in characters."""
    more: int
    """Number of further matching passages of the artifact; 0 if all are listed."""
    score: float
    """The relevance; higher is better. Scores of different requests cannot be compared."""
    text: str
    """The matching part of the text."""


class FieldMatch1(TypedDict):
    """A matching passage of a field."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: NotRequired[list[AttributeSummary] | None]
    """Its attributes, sorted by name and value; only on request."""
    captures: NotRequired[list[CaptureSummary] | None]
    """Its captures in the order in which they were added; only on request."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time that it states."""
    labels: NotRequired[dict[str, str] | None]
    """Its labels, by key; only on request."""
    note: NotRequired[str | None]
    """Its note; only on request, and if it has one."""
    pinned: NotRequired[bool | None]
    """Whether it is pinned; only on request."""
    run_id: NotRequired[str | None]
    """The id of the run that it records, if it states one."""
    tags: NotRequired[list[str] | None]
    """Its tags, by name; only on request."""
    pointer: str
    """A JSON Pointer; in JSON Lines, `line 7` and a pointer into it."""
    capture_hash: CaptureHash
    """The capture that the passage was read from."""
    cut_after: bool
    """Whether the passage continues after the text."""
    cut_before: bool
    """Whether the passage continues before the text."""
    field: str
    """The name of the field."""
    highlights: list[list[int]]
    """The matches in the text: first character and end of each, counted in characters."""
    more: int
    """Number of further matching passages of the artifact; 0 if all are listed."""
    score: float
    """The relevance; higher is better. Scores of different requests cannot be compared."""
    text: str
    """The matching part of the text."""


class FindAnswer(TypedDict):
    """Artifacts that match."""

    found: int
    """Number of matching artifacts from the beginning of this page on."""
    hidden: int
    """Number of artifacts that were omitted because another matching artifact extends them, as far as artifacts were read: all of them unless there are more than `found`."""
    hits: list[FoundArtifact]
    """The artifacts in the requested order."""
    is_more: bool
    """Whether there are more than `found`: matches beyond the page are counted up to 1000."""
    next: NotRequired[FindCursor | None]
    """The end of this page; `None` if it is the last one."""


class FindConditionMention(TypedDict):
    """A condition on artifacts."""

    digest: Digest
    """The digest."""
    group: NotRequired[str | None]
    """The group of the role, such as `prompt`; any if there is none."""
    type: Literal['mention']


class FindConditionAbout(TypedDict):
    """A condition on artifacts."""

    digest: Digest
    """The hash."""
    type: Literal['about']


class FindConditionAttribute(TypedDict):
    """A condition on artifacts."""

    name: str
    """The name."""
    type: Literal['attribute']
    value: str
    """The value."""


class FindConditionAttributeLike(TypedDict):
    """A condition on artifacts."""

    name: str
    """The name."""
    pattern: str
    """The pattern, in which `*` stands for any text, also none."""
    type: Literal['attribute-like']


class FindConditionRange(TypedDict):
    """A condition on artifacts."""

    least: NotRequired[int | None]
    """The smallest number; any if there is none."""
    most: NotRequired[int | None]
    """The largest number; any if there is none."""
    name: str
    """The name."""
    type: Literal['range']


class FindConditionSignature(TypedDict):
    """A condition on artifacts."""

    key_id: NotRequired[str | None]
    """The key id that the capture states; any if there is none."""
    state: SignatureName
    """The state."""
    type: Literal['signature']


class FindConditionNote(TypedDict):
    """A condition on artifacts."""

    text: str
    """The text; every note contains an empty text."""
    type: Literal['note']


class FindConditionTagged(TypedDict):
    """A condition on artifacts."""

    name: NotRequired[str | None]
    """The tag; any if there is none."""
    type: Literal['tagged']


class FindConditionPinned(TypedDict):
    """A condition on artifacts."""

    type: Literal['pinned']


class FindConditionLabel(TypedDict):
    """A condition on artifacts."""

    key: str
    """The key."""
    type: Literal['label']
    value: NotRequired[str | None]
    """The value; any if there is none."""


class FindConditionLabelLike(TypedDict):
    """A condition on artifacts."""

    key: str
    """The key."""
    pattern: str
    """The pattern, in which `*` stands for any text, also none."""
    type: Literal['label-like']


class FindCursor(TypedDict):
    """The end of a page: where the next one begins. It stays valid if artifacts are added or removed."""

    core_hash: CoreHash
    """The core hash."""
    kind: NotRequired[str | None]
    """The kind, if the order is by kind."""
    number: NotRequired[int | None]
    """The number, if the order is by an attribute and the artifact has it."""
    position: int
    """The position among equals."""
    time: NotRequired[str | None]
    """The time, if the order is by a time and the artifact has it."""


class NameMembers(TypedDict):
    """By the values of an attribute, the largest or latest first; artifacts without it come last."""

    name: str
    """The name. The values must have an order: they are times, durations, counts or amounts."""


class AttributeMembers(TypedDict):
    """By the values of an attribute, the largest or latest first; artifacts without it come last."""

    attribute: NameMembers
    """By the values of an attribute, the largest or latest first; artifacts without it come last."""


class FindPeriod(TypedDict):
    """A period of one of the times of an artifact."""

    by: NotRequired[TimeBasis]
    """The time."""
    since: NotRequired[Timestamp | None]
    """The beginning, inclusive."""
    until: NotRequired[Timestamp | None]
    """The end, exclusive."""


class FindRequest(TypedDict):
    """A request for artifacts."""

    after: NotRequired[FindCursor | None]
    """The end of the previous page; the first page if there is none."""
    all_versions: NotRequired[bool]
    """Whether to include artifacts that another matching artifact extends, such as earlier versions of a trace."""
    details: NotRequired[list[Detail]]
    """What to return of each artifact besides its times and its matches."""
    filter: NotRequired[ArtifactFilter]
    """What the artifacts must match. If it is of packs only, a pack also matches where the session in it does."""
    limit: NotRequired[int | None]
    """Maximum number of artifacts; unlimited if there is none."""
    order: NotRequired[FindOrder]
    """The order of the artifacts."""


class FindingSummary(TypedDict):
    """A defect that a check found."""

    about: str
    """The type of its subject, such as `artifact`."""
    detail: str
    """The details."""
    finding: str
    """Its type, such as `damaged-bytes`."""
    meaning: str
    """What findings of this type mean."""
    subject: str
    """The name or hash of its subject."""


class ForgetAnswer(TypedDict):
    """The decisions of a retention policy, and what was removed."""

    at: Timestamp
    """The time from which ages are measured."""
    decisions: list[RetentionDecision]
    """The decision on each artifact of the kinds of the policy, by group, newest first."""
    removal: NotRequired[ForgetRemoval | None]
    """What was removed; `None` in a dry run."""
    shares: list[RetentionShare]
    """Number of artifacts of each kind that the policy does not keep, by kind."""


class ForgetPlan(TypedDict):
    """What a retention policy removes, decided at one time."""

    artifacts: list[CoreHash]
    """The artifacts to be removed."""
    at: Timestamp
    """The time from which ages are measured."""


class ForgetRemoval(TypedDict):
    """What was removed."""

    erasure: NotRequired[ErasureSummary | None]
    """What remains of the removed artifacts; `None` if there are none."""
    removed: list[CoreHash]
    """The removed artifacts, in the order of their removal."""
    size: int
    """The total size of their captures in bytes."""
    spared: list[CoreHash]
    """The artifacts that were planned for removal and are kept because of changes since then."""


class ForgetRequest(TypedDict):
    """A request to remove the artifacts that a retention policy does not keep, in transactions of a hundred artifacts."""

    dry_run: NotRequired[bool]
    """Whether to only decide."""
    plan: NotRequired[ForgetPlan | None]
    """The plan of an earlier dry run with the same policy. Only artifacts that it removes are removed, and of these the ones that the policy keeps by now are spared, because they were added again, tagged, labeled, pinned or linked to."""
    policy: NotRequired[RetentionPolicy]
    """The policy. It must have a rule."""
    reason: NotRequired[str | None]
    """The reason, which the tombstones record."""


class ForkSummaryHeader(TypedDict):
    """A pair of artifacts that fork."""

    header: Digest
    """The digest of the header that they share."""
    record: int
    """The number of the first record in which they differ, from 0."""
    traces: list[ForkedTrace]
    """Both traces."""


class ForkSummaryInputs(TypedDict):
    """A pair of artifacts that fork."""

    inputs: Digest
    """The digest of the inputs that they share."""
    record: int
    """The number of the first record in which they differ, from 0."""
    traces: list[ForkedTrace]
    """Both traces."""


class ForkSummaryRunId(TypedDict):
    """A pair of artifacts that fork."""

    run_id: str
    """The run id that they share."""
    runs: list[ForkedRun]
    """Both run packs."""
    step: int
    """The number of the first step in which they differ, from 0."""


class ForkedRun(TypedDict):
    """A run pack that forks from another one."""

    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The id of its kind."""
    says: NotRequired[str | None]
    """The step as it is written, without white space, if it was requested."""
    step_hash: Digest
    """The digest of the step."""


class ForkedTrace(TypedDict):
    """A trace that forks from another one."""

    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The id of its kind."""
    record_hash: Digest
    """The digest of the record."""
    says: NotRequired[str | None]
    """The record as it is written, if it was requested."""


class ForksAnswer(TypedDict):
    """Pairs of artifacts that fork."""

    count: int
    """Number of all pairs. Run packs that share two run ids count twice."""
    forks: list[ForkSummary]
    """The pairs: traces first, by what they share and their core hashes; last those of equal inputs."""
    next: NotRequired[ForksCursor | None]
    """The end of this page; `None` if it is the last one."""


class ForksCursor(TypedDict):
    """The end of a page: the pair after which the next one begins. It stays valid if artifacts are added or removed."""

    artifacts: list[CoreHash]
    """The core hashes."""
    header: NotRequired[Digest | None]
    """The digest of the header that the pair shares, if they are traces."""
    inputs: NotRequired[Digest | None]
    """The digest of the inputs that the pair shares, if they are traces with other headers."""
    run_id: NotRequired[str | None]
    """The run id that the pair shares, if they are run packs."""


class ForksOfAnswer(TypedDict):
    """The forks of some artifacts."""

    forks: list[ForkSummary]
    """The pairs, each once, in the order of the requested artifacts, which are the first of their pairs."""
    is_complete: bool
    """Whether there were enough comparisons for all artifacts."""
    is_more: bool
    """Whether there are more than the limit."""


class ForksOfRequest(TypedDict):
    """A request for the forks of some artifacts, without the texts of their records and steps."""

    artifacts: NotRequired[list[CoreHash]]
    """The artifacts. Those that are not in the vault are ignored."""
    comparisons: NotRequired[int | None]
    """Maximum number of comparisons of two artifacts; unlimited if there is none."""
    limit: NotRequired[int | None]
    """Maximum number of pairs; unlimited if there is none."""


class ForksRequest(TypedDict):
    """A request for the pairs of traces and run packs that are different histories of one run."""

    after: NotRequired[ForksCursor | None]
    """The end of the previous page; the first page if there is none."""
    limit: NotRequired[int | None]
    """Maximum number of pairs; unlimited if there is none."""


class FoundArtifact(TypedDict):
    """An artifact that matches."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: NotRequired[list[AttributeSummary] | None]
    """Its attributes, sorted by name and value; only on request."""
    captures: NotRequired[list[CaptureSummary] | None]
    """Its captures in the order in which they were added; only on request."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time that it states."""
    labels: NotRequired[dict[str, str] | None]
    """Its labels, by key; only on request."""
    note: NotRequired[str | None]
    """Its note; only on request, and if it has one."""
    pinned: NotRequired[bool | None]
    """Whether it is pinned; only on request."""
    run_id: NotRequired[str | None]
    """The id of the run that it records, if it states one."""
    tags: NotRequired[list[str] | None]
    """Its tags, by name; only on request."""
    matches: list[ArtifactMatch]
    """Where it matches, in the order of the conditions."""


# A link that was found at a distance.
FoundLink = TypedDict(
    'FoundLink',
    {
        'core_hash': "NotRequired[CoreHash | None]",
        'dangling': "bool",
        'digest': "NotRequired[Digest | None]",
        'kind': "NotRequired[str | None]",
        'name': "NotRequired[str | None]",
        'because': "NotRequired[str | None]",
        'direction': "Direction",
        'manual': "bool",
        'relation': "str",
        'strength': "LinkStrength",
        'depth': "int",
        'from': "CoreHash",
    },
)


class GivenAnswer(TypedDict):
    """An answer in an artifact."""

    core_hash: CoreHash
    """The artifact."""
    kind: str
    """The id of its kind."""
    model_id: NotRequired[str | None]
    """The model, if the artifact names one."""
    place: PlaceSummary
    """The location of the answer."""
    time: Timestamp
    """The time: that of creation if the artifact states it, else that of its first addition."""
    time_basis: TimeBasis
    """Which time it is."""


class GroupValues(TypedDict):
    """The values of a key by which artifacts are grouped."""

    name: str
    """`kind`, `label:` and the key of a label, or the name of an attribute."""
    values: list[str]
    """The kind, or the values of the label or the attribute; there may be none."""


class ImportedLabelSummary(TypedDict):
    """A label of a bundle, and what was done with it."""

    core_hash: CoreHash
    """The artifact."""
    key: str
    """The key."""
    outcome: ImportOutcome
    """What was done."""
    value: str
    """The value."""


class ImportedLinkSummary(TypedDict):
    """A link of a bundle, and what was done with it."""

    missing: list[CoreHash]
    """The ends that are not in the vault, if it was not added."""
    note: NotRequired[str | None]
    """Its note."""
    outcome: ImportOutcome
    """What was done."""
    relation: str
    """The relation."""
    source: CoreHash
    """The artifact that the link is from."""
    target: CoreHash
    """The artifact that the link is to."""


class ImportedNoteSummary(TypedDict):
    """A note of a bundle, and what was done with it."""

    core_hash: CoreHash
    """The artifact."""
    note: str
    """The text."""
    outcome: ImportOutcome
    """What was done."""


class ImportedTagSummary(TypedDict):
    """A tag of a bundle, and what was done with it."""

    core_hash: CoreHash
    """The artifact that it names in the bundle."""
    outcome: ImportOutcome
    """What was done."""
    stands_for: NotRequired[CoreHash | None]
    """The other artifact that has the tag in the vault."""
    tag: str
    """The tag."""


class ImportedValue(TypedDict):
    """A value of a file that was not imported as it is."""

    file: str
    """The file."""
    location: str
    """The location in the file."""
    outcome: ValueOutcome
    """What was done."""
    reason: str
    """The value, and the reason why it is not mapped, or what is recorded instead."""


class JournalAnswer(TypedDict):
    """A page of journal entries."""

    entries: list[JournalEntry]
    """The entries, oldest first."""
    next: NotRequired[int | None]
    """The number of the last entry of this page; `None` if it is the last page."""


class JournalEntry(TypedDict):
    """A journal entry."""

    chain: Digest
    """Its chain value."""
    entry: dict[str, Any]
    """What it records."""
    seq: int
    """Its number: 1, 2, 3, and so on."""


class JournalHead(TypedDict):
    """The last entry of a journal."""

    chain: Digest
    """Its chain value: the digest of all entries; 32 zero bytes if the journal is empty."""
    seq: int
    """Its number; 0 if the journal is empty."""


class JournalRequest(TypedDict):
    """A request for journal entries. Everything given must hold."""

    about: NotRequired[Digest | None]
    """Only entries that contain this hash, or have it as their chain value."""
    action: NotRequired[str | None]
    """Only entries of this action, such as `add`."""
    after: NotRequired[int | None]
    """The number of an entry: only those after it."""
    last: NotRequired[int | None]
    """Only this number of entries, the last ones. Ignored if `after` is given."""
    limit: NotRequired[int | None]
    """Maximum number of entries of this page; 1000 if there is none."""
    since: NotRequired[Timestamp | None]
    """Only entries at this time or later."""
    until: NotRequired[Timestamp | None]
    """Only entries before this time."""


class KeptFile(TypedDict):
    """A file of a removed artifact that is kept because other artifacts contain it."""

    artifacts: list[CoreHash]
    """The core hashes of the artifacts that contain it, in order; at most 5."""
    count: int
    """The number of artifacts that contain it."""
    dependents: list[ArtifactName]
    """The same artifacts with their kinds."""
    file: str
    """Its name in the removed artifact."""


class KindTotals(TypedDict):
    """The content of one kind."""

    artifacts: int
    """Number of artifacts."""
    bytes: int
    """The size of the captures in bytes, as they were received."""
    captures: int
    """Number of their captures."""
    kind: str
    """The name of the kind."""


class LabelKey(TypedDict):
    """A key of labels, with its use."""

    artifacts: int
    """Number of artifacts with this key."""
    key: str
    """The key."""
    values: int
    """Number of different values."""


class LabelKeysAnswer(TypedDict):
    """The keys of labels."""

    keys: list[LabelKey]
    """The keys, sorted."""


class LabelStats(TypedDict):
    """The content by the values of a key of labels."""

    key: str
    """The key."""
    unlabeled: int
    """Number of artifacts without this key."""
    values: list[LabelValue]
    """The values, sorted."""


class LabelSummary(TypedDict):
    """A label of an artifact."""

    key: str
    """The key."""
    labeled_at: Timestamp
    """The time at which the artifact got this value."""
    value: str
    """The value."""


class LabelValue(TypedDict):
    """A value of a key of labels, with the artifacts that have it."""

    artifacts: int
    """Number of artifacts."""
    bytes: int
    """The size of the captures in bytes, as they were received."""
    captures: int
    """Number of their captures."""
    value: str
    """The value."""


class LabelValuesAnswer(TypedDict):
    """The values of a key of labels."""

    values: list[LabelValue]
    """The values, sorted."""


class LabelValuesRequest(TypedDict):
    """A request for the values of a key of labels."""

    key: str
    """The key."""
    limit: NotRequired[int | None]
    """Maximum number of values; unlimited if there is none."""
    prefix: NotRequired[str]
    """The beginning of the values; all values if it is empty."""


class LabelsAnswer(TypedDict):
    """The labels of an artifact."""

    labels: list[LabelSummary]
    """The labels, by key."""


class LabelsRequest(TypedDict):
    """A request for the labels of an artifact."""

    artifact: CoreHash
    """The artifact."""


class LastAudit(TypedDict):
    """The last audit of a contract."""

    latest: NotRequired[RunAudit | None]
    """The audit of the latest of them: by the creation time that it states, or by its first addition if it states none."""
    runs: int
    """Number of runs in the vault that the contract governs."""


# A link between two nodes.
LinkEdge = TypedDict(
    'LinkEdge',
    {
        'because': "NotRequired[str | None]",
        'from': "int",
        'manual': "bool",
        'relation': "str",
        'strength': "LinkStrength",
        'to': "int",
    },
)


class LinkEnd(TypedDict):
    """An end of a link: an artifact, or the hash or name of one that is not in the vault."""

    core_hash: NotRequired[CoreHash | None]
    """The core hash of the artifact."""
    dangling: bool
    """Whether it is not in the vault."""
    digest: NotRequired[Digest | None]
    """The core hash that is not in the vault."""
    kind: NotRequired[str | None]
    """The id of the kind of the artifact."""
    name: NotRequired[str | None]
    """The name that is not in the vault."""


class LinkNode(TypedDict):
    """A node of a graph of links."""

    core_hash: NotRequired[CoreHash | None]
    """The core hash of the artifact."""
    dangling: bool
    """Whether it is not in the vault."""
    digest: NotRequired[Digest | None]
    """The core hash that is not in the vault."""
    kind: NotRequired[str | None]
    """The id of the kind of the artifact."""
    name: NotRequired[str | None]
    """The name that is not in the vault."""
    depth: int
    """Its distance from the requested artifact, in links that were followed."""


class LinkSummary(TypedDict):
    """A link of an artifact."""

    core_hash: NotRequired[CoreHash | None]
    """The core hash of the artifact."""
    dangling: bool
    """Whether it is not in the vault."""
    digest: NotRequired[Digest | None]
    """The core hash that is not in the vault."""
    kind: NotRequired[str | None]
    """The id of the kind of the artifact."""
    name: NotRequired[str | None]
    """The name that is not in the vault."""
    because: NotRequired[str | None]
    """The location that it is derived from, or the note on a manual link."""
    direction: Direction
    """The direction, seen from the artifact."""
    manual: bool
    """Whether the link was added manually. Otherwise it is derived from the artifacts."""
    relation: str
    """The relation of the source to the target."""
    strength: LinkStrength
    """How surely the artifacts belong together."""


class LinksAnswer(TypedDict):
    """Links as a graph: each artifact once, the requested one first, then by distance."""

    edges: list[LinkEdge]
    """The links between them."""
    left_out: int
    """Number of links of examined artifacts that were omitted because of the limit."""
    nodes: list[LinkNode]
    """The artifacts, and the missing ones that they refer to."""
    not_followed: int
    """Number of artifacts within the depth whose links were not examined because of the limit."""
    only_coincident: int
    """Number of artifacts within the depth whose links were not examined because only coincident links lead to them."""


class LinksRequest(TypedDict):
    """A request for the links of an artifact, followed to a given depth."""

    artifact: CoreHash
    """The artifact."""
    coincident: NotRequired[bool]
    """Whether coincident links are followed as well. They are always shown, and those of `relation` are followed."""
    depth: NotRequired[int]
    """Maximum distance from the artifact, in links."""
    direction: NotRequired[Direction | None]
    """Only links in this direction."""
    limit: NotRequired[int | None]
    """Maximum number of links; unlimited if there is none."""
    relation: NotRequired[str | None]
    """Only links of this relation."""


class ListAnswer(TypedDict):
    """A page of a list of runs and other artifacts."""

    next: NotRequired[FindCursor | None]
    """The end of this page; `None` if it is the last one."""
    rows: list[ListRow]
    """The rows in the requested order."""


class ListAttribute(TypedDict):
    """The values of an attribute."""

    name: str
    """The name."""
    values: list[str]
    """The values of all artifacts of the row, sorted by the order of their type, without duplicates."""


class ListMember(TypedDict):
    """An artifact of a row."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: NotRequired[list[AttributeSummary] | None]
    """Its attributes, sorted by name and value; only on request."""
    captures: NotRequired[list[CaptureSummary] | None]
    """Its captures in the order in which they were added; only on request."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time that it states."""
    labels: NotRequired[dict[str, str] | None]
    """Its labels, by key; only on request."""
    note: NotRequired[str | None]
    """Its note; only on request, and if it has one."""
    pinned: NotRequired[bool | None]
    """Whether it is pinned; only on request."""
    run_id: NotRequired[str | None]
    """The id of the run that it records, if it states one."""
    tags: NotRequired[list[str] | None]
    """Its tags, by name; only on request."""
    matches: bool
    """Whether it matches the filter."""


class ListRequest(TypedDict):
    """A request for a list of runs and other artifacts."""

    after: NotRequired[FindCursor | None]
    """The end of the previous page; the first page if there is none."""
    artifacts: NotRequired[list[CoreHash]]
    """The only artifacts that can match; any if empty."""
    attributes: NotRequired[list[str]]
    """The names of further attributes to return."""
    details: NotRequired[list[Detail]]
    """The details of each artifact to return."""
    filter: NotRequired[ArtifactFilter]
    """What the artifacts must match. A row is listed if one of its artifacts matches."""
    flat: NotRequired[bool]
    """Whether each artifact has a row of its own. Otherwise the artifacts of one run are one row."""
    limit: NotRequired[int | None]
    """Maximum number of rows; unlimited if there is none."""
    order: NotRequired[FindOrder]
    """The order of the rows: that of the first matching artifact of each."""
    prices: NotRequired[list[ModelPrice]]
    """The prices by which the costs of runs that state none are computed."""


class ListRow(TypedDict):
    """A run, or another artifact, with what its artifacts state. If several state a number or a time, the largest counts, where the numbers of the parts of a run are added up; of texts, those of the first one in `members` that states any. A value that none states is `None`."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    agents: list[str]
    """The agents."""
    attributes: list[ListAttribute]
    """The requested attributes, by name."""
    cost_computed: NotRequired[bool]
    """Whether the costs are not stated, but computed from the tokens and the prices in the request."""
    cost_usd: NotRequired[float | None]
    """The costs in US dollars."""
    created_at: NotRequired[Timestamp | None]
    """The latest creation time."""
    duration_ms: NotRequired[int | None]
    """The milliseconds from beginning to end."""
    errors: NotRequired[int | None]
    """Number of steps that failed or are errors."""
    finished_at: NotRequired[Timestamp | None]
    """The latest time at which it ended."""
    interactions: NotRequired[int | None]
    """Number of interactions."""
    labels: dict[str, list[str]]
    """The labels of all its artifacts: the values of each key, sorted."""
    latency_ms: NotRequired[int | None]
    """The sum of the milliseconds that its steps or interactions took."""
    members: list[ListMember]
    """Its artifacts: recordings of the run first, those that they contain last."""
    models: list[str]
    """The models."""
    providers: list[str]
    """The providers of the models."""
    result: NotRequired[str | None]
    """The result of an export pack."""
    run_id: NotRequired[str | None]
    """The id of the run."""
    steps: NotRequired[int | None]
    """Number of steps."""
    tags: list[str]
    """The tags of all its artifacts, by name."""
    tokens: NotRequired[int | None]
    """Number of tokens, input and output."""
    tokens_input: NotRequired[int | None]
    """Number of input tokens."""
    tokens_output: NotRequired[int | None]
    """Number of output tokens."""
    tool_calls: NotRequired[int | None]
    """Number of tool calls."""


class LongerPrompt(TypedDict):
    """A longer prompt."""

    core_hash: CoreHash
    """The artifact."""
    place: PlaceSummary
    """Its location."""


class MemberSummary(TypedDict):
    """A file of a capture."""

    name: str
    """Its name."""
    size: int
    """Its size in bytes."""


class MentionCount(TypedDict):
    """Number of the mentions of an artifact in one role."""

    count: int
    """The number of mentions."""
    role: str
    """The role."""


class MentionedHash(TypedDict):
    """A hash that artifacts mention."""

    artifacts: list[MentioningArtifact]
    """The artifacts that were last added or seen again, newest first."""
    count: int
    """Number of artifacts that mention it, counted up to 1000."""
    digest: Digest
    """The hash."""
    is_more: bool
    """Whether there are more."""


class MentioningArtifact(TypedDict):
    """An artifact that mentions a hash."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    matches: list[ArtifactMatch]
    """Where it mentions it."""


class MessageMedia(TypedDict):
    """A file in a message."""

    location: NotRequired[str | None]
    """Where it is, if the message does not contain it: an address or an id."""
    media_type: str
    """The media type, or its first part, such as `image`."""
    name: NotRequired[str | None]
    """The name of the file, if stated."""
    size: NotRequired[int | None]
    """The size in bytes, if the message contains it."""


class MessagePartText(TypedDict):
    """A part of a message."""

    text: str
    """The text, which is Markdown as a rule."""
    type: Literal['text']


class MessagePartThinking(TypedDict):
    """A part of a message."""

    text: str
    """The text; empty if the API states it encrypted."""
    type: Literal['thinking']


class MessagePartMedia(TypedDict):
    """A part of a message."""

    location: NotRequired[str | None]
    """Where it is, if the message does not contain it: an address or an id."""
    media_type: str
    """The media type, or its first part, such as `image`."""
    name: NotRequired[str | None]
    """The name of the file, if stated."""
    size: NotRequired[int | None]
    """The size in bytes, if the message contains it."""
    type: Literal['media']


class MessagePartToolCall(TypedDict):
    """A part of a message."""

    arguments: str
    """The arguments: JSON without white space if they are JSON."""
    id: NotRequired[str | None]
    """The id by which the result names the call, if the API has one."""
    name: str
    """The name of the tool."""
    result: NotRequired[MessageToolResult | None]
    """What the tool returned, if a later request of the thread has it. It is not among the messages of that request."""
    type: Literal['tool-call']


class MessagePartToolResult(TypedDict):
    """A part of a message."""

    id: NotRequired[str | None]
    """The id of the call, if the API has one."""
    is_error: bool
    """Whether it is stated to be an error."""
    name: NotRequired[str | None]
    """The name of the tool, if the result states it."""
    parts: list[MessagePart]
    """What the tool returned."""
    type: Literal['tool-result']


class MessagePartRefusal(TypedDict):
    """A part of a message."""

    text: str
    """The text."""
    type: Literal['refusal']


class MessagePartEmbeddings(TypedDict):
    """A part of a message."""

    count: int
    """Number of vectors."""
    dimensions: int
    """Number of numbers of each."""
    type: Literal['embeddings']


class MessagePartUnrecorded(TypedDict):
    """A part of a message."""

    digest: Digest
    """The SHA-256 of its bytes."""
    type: Literal['unrecorded']


class MessagePartOther(TypedDict):
    """A part of a message."""

    type: Literal['other']
    value: str
    """The JSON of the part, without white space, or a text that is not JSON."""


class MessageToolCall(TypedDict):
    """A call of a tool."""

    arguments: str
    """The arguments: JSON without white space if they are JSON."""
    id: NotRequired[str | None]
    """The id by which the result names the call, if the API has one."""
    name: str
    """The name of the tool."""
    result: NotRequired[MessageToolResult | None]
    """What the tool returned, if a later request of the thread has it. It is not among the messages of that request."""


class MessageToolResult(TypedDict):
    """The result of a call of a tool."""

    id: NotRequired[str | None]
    """The id of the call, if the API has one."""
    is_error: bool
    """Whether it is stated to be an error."""
    name: NotRequired[str | None]
    """The name of the tool, if the result states it."""
    parts: list[MessagePart]
    """What the tool returned."""


class MissingArtifact(TypedDict):
    """A missing artifact, with the references to it."""

    core_hash: NotRequired[CoreHash | None]
    """The core hash of the artifact."""
    dangling: bool
    """Whether it is not in the vault."""
    digest: NotRequired[Digest | None]
    """The core hash that is not in the vault."""
    kind: NotRequired[str | None]
    """The id of the kind of the artifact."""
    name: NotRequired[str | None]
    """The name that is not in the vault."""
    referrers: list[MissingReference]
    """The references, by artifact and place."""


class MissingReference(TypedDict):
    """A reference to a missing artifact."""

    core_hash: CoreHash
    """The artifact that refers to the missing one."""
    kind: str
    """The id of its kind."""
    place: str
    """The location of the reference; empty for names."""
    relation: str
    """The relation of the reference."""
    role: NotRequired[str | None]
    """The role; `None` for names."""


class ModelPrice(TypedDict):
    """The price of a model, for a million tokens."""

    input: UsdAmount
    """The price of a million input tokens in US dollars."""
    model: str
    """The id of the model; with `*` at the end, the models whose ids begin with what precedes it. Of several that match, the whole id counts, otherwise the longest beginning."""
    output: UsdAmount
    """The price of a million output tokens in US dollars."""


class NearAnswer(TypedDict):
    """What is similar to the conditions of a filter."""

    longer_prompts: list[LongerPrompt]
    """Longer prompts that contain it, if there is a search index: the best ones."""
    prompt: NotRequired[NearPrompt | None]
    """The form in which artifacts mention the prompt, if it differs only in line feeds at the end."""
    values: list[NearValues]
    """The conditions that no artifact matches, with similar values."""


class NearPrompt(TypedDict):
    """A prompt that differs from the requested one only in line feeds at the end."""

    count: int
    """Number of artifacts that mention it."""
    digest: Digest
    """Its hash."""
    has_line_feed: bool
    """Whether it has a line feed at the end that the requested one does not have. Otherwise it is the other way round."""


class NearRequest(TypedDict):
    """A request for what is similar to the conditions of a filter."""

    filter: NotRequired[ArtifactFilter]
    """The filter. Only its conditions on attributes, labels and tags are considered."""
    prompt: NotRequired[str | None]
    """The text of a prompt, if its hash is one of the conditions."""


class NearValues(TypedDict):
    """The values that artifacts have in place of one that none has."""

    name: str
    """The name of an attribute, `label` or `label:` and a key, or `tag`."""
    similar: list[str]
    """Similar ones, the most similar first; some others if none is similar and there are few."""
    value: str
    """The value that no artifact has."""


class NoteAnswer(TypedDict):
    """The note of an artifact."""

    note: NotRequired[NoteSummary | None]
    """The note; `None` if the artifact has none."""


class NoteRequest(TypedDict):
    """A request for the note of an artifact."""

    artifact: CoreHash
    """The artifact."""


class NoteSummary(TypedDict):
    """A note."""

    core_hash: CoreHash
    """The core hash of the artifact."""
    note: str
    """The text."""
    noted_at: Timestamp
    """The time at which it was written."""


class OmittedFindings(TypedDict):
    """The number of findings that are not listed."""

    contract: CoreHash
    """The contract."""
    run: CoreHash
    """The run."""
    run_id: NotRequired[str | None]
    """The id that the run states, if it states one."""
    violations_omitted: int
    """The number."""


class PartChange(TypedDict):
    """A difference between two artifacts."""

    change: ChangeType
    """The type."""
    one: NotRequired[str | None]
    """The part in the first artifact."""
    other: NotRequired[str | None]
    """The part in the second artifact."""
    says: str
    """A description of the difference; empty if the type describes it."""
    values: list[ChangedValue]
    """The values that differ; the whole part if only one of the artifacts has it."""


class PathAnswer(TypedDict):
    """The shortest path. Of equally short ones, it is the first by relation and hash."""

    is_complete: bool
    """Whether the search is complete: a path was found, or the links of all reached artifacts were read. It ends before that after those of 10,000 artifacts."""
    reached: int
    """Number of artifacts that were reached from the start, which is one of them."""
    steps: NotRequired[list[PathStep] | None]
    """The steps; `None` if no path was found."""


class PathName(TypedDict):
    """The path of a file, which need not be UTF-8."""

    path: str
    """The path. Bytes that are not UTF-8 are replaced by U+FFFD."""
    path_bytes: NotRequired[str | None]
    """All bytes of the path as lowercase hex digits; missing if it is UTF-8."""


# A request for the shortest path of links between two artifacts, in any direction.
PathRequest = TypedDict(
    'PathRequest',
    {
        'coincident': "NotRequired[bool]",
        'from': "CoreHash",
        'to': "CoreHash",
    },
)


# A step of a path.
PathStep = TypedDict(
    'PathStep',
    {
        'core_hash': "NotRequired[CoreHash | None]",
        'dangling': "bool",
        'digest': "NotRequired[Digest | None]",
        'kind': "NotRequired[str | None]",
        'name': "NotRequired[str | None]",
        'because': "NotRequired[str | None]",
        'direction': "Direction",
        'manual': "bool",
        'relation': "str",
        'strength': "LinkStrength",
        'from': "CoreHash",
    },
)


class PeriodRule(TypedDict):
    """A rule that keeps the newest artifact of each of the last periods."""

    count: int
    """The number of periods."""
    period: CalendarPeriod
    """The type of period."""


class PinRequest(TypedDict):
    """A request to protect an artifact from removal. It replaces the note of an existing pin."""

    core_hash: CoreHash
    """The artifact."""
    note: NotRequired[str | None]
    """The reason. A blank one is as none."""


class PinSummary(TypedDict):
    """A pinned artifact."""

    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The id of its kind."""
    note: NotRequired[str | None]
    """The reason, if one was given."""
    pinned_at: Timestamp
    """The time at which it was pinned."""


class PinsAnswer(TypedDict):
    """All pinned artifacts."""

    pins: list[PinSummary]
    """The artifacts in the order in which they were pinned."""


class PlaceSummaryIndex(TypedDict):
    """A location in an artifact."""

    index: int
    """The number, from 0."""
    unit: str
    """The unit, such as `step`."""


class PlaceSummaryPointer(TypedDict):
    """A location in an artifact."""

    pointer: str
    """A JSON Pointer; in JSON Lines, `line 7` and a pointer into it."""


class PromptAnswers(TypedDict):
    """A prompt and its answers."""

    answers: list[DistinctAnswer]
    """The different answers, by the time at which each was first given."""
    count: int
    """Number of answers."""
    prompt: NotRequired[ViewBody | None]
    """The text of the prompt, if an artifact in the vault records it."""
    prompt_hash: Digest
    """The digest of the prompt."""


class ReclaimAnswer(TypedDict):
    """The result of reclaiming disk space."""

    blobs: int
    """Number of unreferenced blobs that were removed."""
    bytes_after: int
    """Their size afterwards; 0 if nothing was to be done."""
    bytes_before: int
    """The size of the vault's files in bytes before; 0 if nothing was to be done."""
    changed: bool
    """Whether there was something to do. Otherwise, nothing was changed."""
    dictionaries: int
    """Number of dictionaries that were removed."""
    log_remains: bool
    """Whether removed data remains in the write-ahead log, because others were reading from it."""
    orphans: int
    """Number of objects in object storage that were deleted because no artifact was stored with them: interrupted uploads."""
    recompressed: int
    """Number of payloads that were recompressed."""


class ReclaimableAnswer(TypedDict):
    """What reclaiming disk space would remove."""

    blob_bytes: int
    """The stored size of these blobs in bytes."""
    blobs: int
    """Number of unreferenced blobs."""
    dictionaries: int
    """Number of dictionaries that are unused, or that may contain pieces of removed documents."""
    free_bytes: int
    """Number of free bytes in the file."""
    has_removals: bool
    """Whether something was removed since the file was last rewritten."""
    bytes: int
    """The minimum number of bytes that can be reclaimed: the sum of `blob_bytes` and `free_bytes`."""


class ReclaimableSpace(TypedDict):
    """The reclaimable space of a vault."""

    blob_bytes: int
    """The stored size of these blobs in bytes."""
    blobs: int
    """Number of unreferenced blobs."""
    dictionaries: int
    """Number of dictionaries that are unused, or that may contain pieces of removed documents."""
    free_bytes: int
    """Number of free bytes in the file."""
    has_removals: bool
    """Whether something was removed since the file was last rewritten."""


class RecordedResponse(TypedDict):
    """A recorded response."""

    arguments: NotRequired[JsonText]
    """The arguments of the tool call, in the form in which calls are compared; `None` if they are not known."""
    arguments_hash: NotRequired[Digest | None]
    """The digest of the arguments."""
    index: int
    """The number of the interaction or step, from 0."""
    is_error: bool
    """Whether the call failed: the response is then the recorded error message."""
    output: NotRequired[JsonText]
    """The complete recorded response; `None` for interactions of sessions."""
    prompt_hashes: list[Digest]
    """The digests of the texts in the request, with the actual prompt last."""
    responder: str
    """`model` or `tool`."""
    response: str
    """The text of the response."""
    tool: NotRequired[str | None]
    """The name of the tool, if it was recorded."""


class RecordingFilter(TypedDict):
    """A filter of the recordings of a prompt."""

    attributes: NotRequired[list[AttributeSummary]]
    """Attributes that a recording must have."""
    since: NotRequired[Timestamp | None]
    """Last seen at this time or later."""
    until: NotRequired[Timestamp | None]
    """Last seen before this time."""


class RecordingsAnswer(TypedDict):
    """Recordings of a prompt."""

    next: NotRequired[FindCursor | None]
    """The end of this page; `None` if it is the last one."""
    recordings: list[FoundArtifact]
    """The recordings, last seen first, with the locations of the prompt."""


class RecordingsRequest(TypedDict):
    """A request for the recordings in which a prompt can be looked up."""

    after: NotRequired[FindCursor | None]
    """The end of the previous page; the first page if there is none."""
    details: NotRequired[list[Detail]]
    """What to return of each artifact besides its times and its matches."""
    filter: NotRequired[RecordingFilter]
    """What the recordings must match."""
    limit: NotRequired[int | None]
    """Maximum number of recordings; unlimited if there is none."""
    prompt: Digest
    """The SHA-256 of the prompt."""


class RejectedCapture(TypedDict):
    """A capture that was not copied."""

    name: str
    """Its name: the source, and the beginning of the capture's hash."""
    reason: str
    """The first violation."""


class RemnantSummary0(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    limit: int
    """The size in bytes up to which files are rewritten."""
    part: Literal['large-file']


class RemnantSummary1(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    part: Literal['file']
    reason: str
    """The reason."""


class RemnantSummary2(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    kinds: list[str]
    """The ids of the kinds."""
    part: Literal['dictionaries']


class RemnantSummary3(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    part: Literal['log']


class RemnantSummary4(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    part: Literal['database']


class RemnantSummary5(TypedDict):
    """A part of the vault's files that may still contain removed bytes."""

    part: Literal['objects']


class RemoveAnswer(TypedDict):
    """The removed artifacts."""

    erasure: NotRequired[ErasureSummary | None]
    """What remains of them; `None` in a dry run."""
    removed: list[Removed]
    """The artifacts as they were before: the requested ones, then their containers."""


class RemoveLabelsRequest(TypedDict):
    """A request to remove labels from artifacts."""

    core_hashes: list[CoreHash]
    """The artifacts."""
    keys: list[str]
    """The keys of the labels."""


class RemoveLinkRequest(TypedDict):
    """A request to remove a manual link. Derived links cannot be removed."""

    relation: str
    """The relation."""
    source: CoreHash
    """The source artifact."""
    target: CoreHash
    """The target artifact."""


class RemoveNoteRequest(TypedDict):
    """A request to remove the note of an artifact."""

    core_hash: CoreHash
    """The artifact."""


class RemoveRequest(TypedDict):
    """A request to remove artifacts with all their captures: all of them or none. Tombstones remain. Files that artifacts share are kept as long as one of the artifacts is."""

    artifacts: NotRequired[list[CoreHash]]
    """The artifacts."""
    dry_run: NotRequired[bool]
    """Whether to only answer what would be removed now. The removal itself checks everything again in its own transaction."""
    ignore_links: NotRequired[bool]
    """Whether to remove them even if other artifacts link to them."""
    reason: NotRequired[str | None]
    """The reason, which the tombstones record."""
    with_containers: NotRequired[bool]
    """Whether to also remove the artifacts that contain their bytes, such as the packs of a session."""


class RemoveTagRequest(TypedDict):
    """A request to remove a tag."""

    name: str
    """The tag."""


class Removed(TypedDict):
    """A removed artifact."""

    captures: list[CaptureHash]
    """Its captures in the order in which they were added."""
    core_hash: CoreHash
    """Its core hash."""
    erased: NotRequired[bool | None]
    """Whether no byte of it is left in the vault's files, except those of `shared`; missing in a dry run."""
    kind: str
    """The id of its kind."""
    shared: list[KeptFile]
    """Its files that are kept because other artifacts contain them, by name."""
    size: int
    """The total size of its captures in bytes."""


class RemovedArtifact(TypedDict):
    """A removed artifact."""

    actor: NotRequired[str | None]
    """Who removed it, if that is recorded."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The id of its kind."""
    reason: NotRequired[str | None]
    """The reason, if one was given."""
    removed_at: Timestamp
    """The time of the removal."""
    seq: int
    """The number of the journal entry."""
    size: int
    """Number of bytes that were removed."""


class RemovedHash(TypedDict):
    """The hash of an artifact or a capture that was removed."""

    digest: Digest
    """The core hash or the capture hash."""
    removed: RemovedArtifact
    """The removal."""


class RepairSummary(TypedDict):
    """A completed repair."""

    about: str
    """The type of its subject, such as `artifact`."""
    repaired: str
    """What was done."""
    subject: str
    """The name or hash of its subject."""


class ReplayAnswer(TypedDict):
    """The recorded response to a prompt."""

    capture_hash: CaptureHash
    """Its capture."""
    core_hash: CoreHash
    """The recording."""
    index: int
    """The number of the interaction or step, from 0."""
    occurrence: int
    """Which recording of the prompt this is, from 1."""
    occurrences: int
    """Number of recordings of the prompt."""
    prompt_hash: Digest
    """The SHA-256 of the prompt."""
    response: str
    """The response."""
    response_hash: Digest
    """The SHA-256 of the response."""


class ReplayRequest(TypedDict):
    """A request for the recorded response to a prompt."""

    artifact: NotRequired[CoreHash | None]
    """The recording; the one that was last added or seen again if there is none."""
    call: NotRequired[int | None]
    """The number of the call, from 0, if calls must be in recorded order."""
    capture_hash: NotRequired[CaptureHash | None]
    """The capture of the recording; the preferred one if there is none."""
    filter: NotRequired[RecordingFilter]
    """What the recording must match, if none is given."""
    occurrence: NotRequired[int | None]
    """Which recording of the prompt, from 1; the first if there is none."""
    prompt: Digest
    """The SHA-256 of the prompt."""


class ResolveAnswerArtifact(TypedDict):
    """What a text refers to."""

    artifact: ArtifactSummary
    """The artifact."""
    capture_hash: CaptureHash
    """The preferred capture."""
    outcome: Literal['artifact']


class ResolveAnswerCapture(TypedDict):
    """What a text refers to."""

    artifact: ArtifactSummary
    """The artifact."""
    capture_hash: CaptureHash
    """The capture."""
    outcome: Literal['capture']


class ResolveAnswerMentioned(TypedDict):
    """What a text refers to."""

    artifacts: list[MentioningArtifact]
    """The artifacts that were last added or seen again, newest first."""
    count: int
    """Number of artifacts that mention it, counted up to 1000."""
    digest: Digest
    """The hash."""
    is_more: bool
    """Whether there are more."""
    outcome: Literal['mentioned']


class ResolveAnswerAmbiguous(TypedDict):
    """What a text refers to."""

    candidates: list[ResolveCandidate]
    """The first of them, in order."""
    count: NotRequired[int | None]
    """Their number, if it is known."""
    outcome: Literal['ambiguous']


class ResolveAnswerRemoved(TypedDict):
    """What a text refers to."""

    outcome: Literal['removed']
    removed: RemovedArtifact
    """The artifact."""


class ResolveAnswerNotFound(TypedDict):
    """What a text refers to."""

    message: str
    """The reason."""
    outcome: Literal['not-found']


class ResolveCandidateArtifact(TypedDict):
    """Something that a text may refer to."""

    core_hash: CoreHash
    """Its core hash."""
    type: Literal['artifact']


class ResolveCandidateCapture(TypedDict):
    """Something that a text may refer to."""

    capture_hash: CaptureHash
    """Its hash."""
    core_hash: CoreHash
    """The core hash of its artifact."""
    type: Literal['capture']


class ResolveCandidateMentioned(TypedDict):
    """Something that a text may refer to."""

    digest: Digest
    """The hash."""
    type: Literal['mentioned']


class ResolveRequest(TypedDict):
    """A request for what a text refers to."""

    any_artifact: NotRequired[bool]
    """Whether a hash that captures of several artifacts have refers to the first of them. They have the same bytes."""
    text: str
    """The text: a hash or the first digits of one, `@` and a tag, `latest`, `latest~1` for the artifact before it, `run:` and the id of a run, a tag or the id of a run alone, or the address of a page. A text that refers to different artifacts, as a hash, a tag or the id of a run, is ambiguous."""


class ResponsesAnswer(TypedDict):
    """The recorded responses of an artifact."""

    count: int
    """Number of all responses."""
    next: NotRequired[int | None]
    """The end of this page; `None` if it is the last one."""
    responses: list[RecordedResponse]
    """The responses, in recorded order."""
    unit: str
    """The unit in which they are counted: `interaction` or `step`."""


class ResponsesRequest(TypedDict):
    """A request for the recorded responses of an artifact."""

    after: NotRequired[int | None]
    """The end of the previous page; the first page if there is none."""
    artifact: CoreHash
    """The recording."""
    capture_hash: NotRequired[CaptureHash | None]
    """Its capture; the preferred one if there is none."""
    limit: NotRequired[int | None]
    """Maximum number of responses; unlimited if there is none."""


class RetentionDecision(TypedDict):
    """The decision of a retention policy on an artifact."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    at: NotRequired[Timestamp | None]
    """That time; `None` if the artifact does not have it."""
    by: TimeBasis
    """Which of its times is used."""
    group: list[GroupValues]
    """The values that define its group."""
    keep: bool
    """Whether it is kept."""
    reasons: list[str]
    """Descriptions of why it is kept, or why no rule keeps it."""
    size: int
    """The total size of its captures in bytes."""


class RetentionLabel(TypedDict):
    """A label: any value of a key, or one value."""

    key: str
    """The key."""
    value: NotRequired[str | None]
    """The value; any if there is none."""


class RetentionPolicy(TypedDict):
    """A retention policy: an artifact is kept if any rule keeps it."""

    by: NotRequired[TimeBasis]
    """The time that is used. Artifacts without this time are kept."""
    group_by: NotRequired[list[str]]
    """The keys by which artifacts are grouped: `kind`, `label:` and the key of a label, or the name of an attribute. Without any, all artifacts are one group."""
    ignore_links: NotRequired[bool]
    """Remove artifacts even if a kept artifact links to them. Artifacts whose bytes a kept artifact contains are still kept."""
    keep_labels: NotRequired[list[RetentionLabel]]
    """Keep artifacts with one of these labels."""
    keep_last: NotRequired[int | None]
    """Keep this number of the newest artifacts of each group. 0 as the only rule keeps none."""
    keep_periods: NotRequired[list[PeriodRule]]
    """Keep the newest artifact of each of a number of last non-empty periods, and the oldest of a group while there are fewer."""
    keep_tags: NotRequired[list[str]]
    """Keep artifacts with a tag that matches one of these patterns: a tag, or the beginning of one and `*`."""
    keep_within_ms: NotRequired[int | None]
    """Keep artifacts whose time is at most this number of milliseconds before now. If the limit cannot be computed, all are kept."""
    kinds: NotRequired[list[str]]
    """The ids of the kinds that the policy applies to; all if empty. Other artifacts are kept, and there is no decision on them."""
    labels: NotRequired[list[RetentionLabel]]
    """The labels that an artifact must all have for the policy to apply to it; any artifact if empty. Other artifacts are kept, and there is no decision on them."""


class RetentionShare(TypedDict):
    """Number of artifacts of a kind that would be removed."""

    kind: str
    """The kind."""
    removed: int
    """Number of artifacts to be removed."""
    total: int
    """Total number."""


class RuleSummary(TypedDict):
    """A rule."""

    id: str
    """The id, such as `MI7`."""
    kind: str
    """The id of the kind that the rule is for; `document` for all, `vault` for artifacts added to one, `audit` for audits of contracts, `bundle` for bundles, `import` for files of other programs."""
    severity: Severity
    """The consequence of breaking it."""
    summary: str
    """The requirement, in one line."""
    why: str
    """The reason, and how to fix a violation."""


class RulesAnswer(TypedDict):
    """Rules."""

    rules: list[RuleSummary]
    """The rules: those of all documents, of each kind, of vaults, of audits, of bundles and of files of other programs."""


class RulesRequest(TypedDict):
    """A request for rules."""

    id: NotRequired[str | None]
    """The id of a rule, ignoring case: only this one."""


class RunAudit(TypedDict):
    """The audit of a run."""

    clean: bool
    """Whether there are effects, all of them are verified, and there is no finding."""
    effects: list[EffectAudit]
    """The effects of the contract, in order."""
    findings: list[AuditFinding]
    """Violations of the contract, and what could not be checked."""
    kind: str
    """The id of its kind."""
    omitted: NotRequired[OmittedFindings | None]
    """The number of findings that are not listed, if there are any."""
    run: CoreHash
    """The run."""
    run_id: NotRequired[str | None]
    """The id that it states, if it states one."""


class RunCounts(TypedDict):
    """The number of runs that match a filter."""

    attributes: list[RunValueCount]
    """The most frequent values of the requested attributes: by name, each with the most runs first. A run with several values counts for each."""
    failures: int
    """Number of runs with errors."""
    labels: list[RunValueCount]
    """The most frequent labels, most runs first."""
    runs: int
    """Number of runs."""
    successes: int
    """Number of runs with a recording that states that there were none."""


class RunGroup(TypedDict):
    """The runs with one value. A run with several values is in the group of each."""

    cost_usd: NotRequired[float | None]
    """The costs in US dollars of the runs of which they are known."""
    failures: int
    """Number of runs with errors."""
    latency_p50_ms: NotRequired[int | None]
    """Half of the runs took at most this number of milliseconds: the latency that they state, otherwise the time from beginning to end. Rounded down to three digits."""
    latency_p95_ms: NotRequired[int | None]
    """Of 100 runs, 95 took at most this number of milliseconds."""
    runs: int
    """Number of runs."""
    runs_with_cost: int
    """Number of runs of which the costs are known."""
    tokens_input: NotRequired[int | None]
    """Number of input tokens."""
    tokens_output: NotRequired[int | None]
    """Number of output tokens."""
    value: str
    """The value."""


class RunGroupingDay(TypedDict):
    """What runs are grouped by."""

    type: Literal['day']


class RunGroupingLabel(TypedDict):
    """What runs are grouped by."""

    key: str
    """The key."""
    type: Literal['label']


class RunGroupingAttribute(TypedDict):
    """What runs are grouped by."""

    name: str
    """The name."""
    type: Literal['attribute']


class RunStatsAnswer(TypedDict):
    """Statistics of runs by what they state."""

    days: NotRequired[list[RunGroup]]
    """The days in their order, if they were requested too."""
    groups: list[RunGroup]
    """The runs with each value: days in their order, other values by the number of runs, most first, and by value."""
    total: RunTotals
    """All runs."""
    without: int
    """Number of runs without a value."""


class RunStatsRequest(TypedDict):
    """A request for statistics of runs by what they state."""

    by: NotRequired[RunGrouping]
    """What runs are grouped by."""
    filter: NotRequired[ArtifactFilter]
    """What the runs must match. If it names no kinds, it is of all that record what an agent or a model did."""
    prices: NotRequired[list[ModelPrice]]
    """The prices by which the costs of runs that state none are computed."""
    with_days: NotRequired[bool]
    """Whether to count the runs of each day too."""


class RunTotals(TypedDict):
    """What some runs state together. What none of them states is `None`."""

    cost_usd: NotRequired[float | None]
    """The costs in US dollars of the runs of which they are known."""
    failures: int
    """Number of runs with errors."""
    latency_p50_ms: NotRequired[int | None]
    """Half of the runs took at most this number of milliseconds: the latency that they state, otherwise the time from beginning to end. Rounded down to three digits."""
    latency_p95_ms: NotRequired[int | None]
    """Of 100 runs, 95 took at most this number of milliseconds."""
    runs: int
    """Number of runs."""
    runs_with_cost: int
    """Number of runs of which the costs are known."""
    tokens_input: NotRequired[int | None]
    """Number of input tokens."""
    tokens_output: NotRequired[int | None]
    """Number of output tokens."""


class RunValueCount(TypedDict):
    """The number of runs with a value."""

    name: str
    """The name of the attribute, or the key of the label."""
    runs: int
    """Number of runs."""
    value: str
    """The value."""


class SearchAnswer(TypedDict):
    """Matching passages."""

    hits: list[FieldMatch]
    """The passages, best first. If too many match to rank them, the newest are first, and all scores are 0."""
    is_more: bool
    """Whether there are more than the limit."""


class SearchIndexAnswer(TypedDict):
    """The state of the search index."""

    bytes: int
    """Number of bytes that it takes in the vault, which depends on the engine; 0 if there is no index."""
    current: NotRequired[bool | None]
    """Whether its version is that of this program, which otherwise rebuilds it; `None` if there is no index."""
    waiting: NotRequired[int | None]
    """Number of captures that are not indexed yet; `None` if there is no index."""


class SearchRequest(TypedDict):
    """A request for passages of text. What is not in the index yet is not searched: [`Vault::catch_up_search`] adds it."""

    details: NotRequired[list[Detail]]
    """What to return of each artifact besides its times."""
    every_passage: NotRequired[bool]
    """Whether to return every passage, and not only the best one of each artifact."""
    fields: NotRequired[list[str]]
    """The names of the fields to search, such as `response`; all if empty."""
    filter: NotRequired[ArtifactFilter]
    """The artifacts to search."""
    limit: NotRequired[int]
    """Maximum number of hits."""
    width: NotRequired[int]
    """Approximate number of columns of the text of a hit: as many characters, or half as many wide ones."""
    words: NotRequired[str]
    """The words: all must be in one passage. A phrase is in quotation marks, `word*` is any word that begins so, and `OR` separates alternatives."""


class SecretMatch(TypedDict):
    """Something that looks like a secret."""

    beginning: str
    """Its first four characters, or fewer."""
    looks_like: str
    """What it looks like, with an article, such as `an API key of OpenAI`."""
    place: str
    """Where it is: a JSON Pointer, `line 7` and a pointer into it, or a line."""
    rule: str
    """The name of the rule, such as `openai-api-key`."""


class SetLabelsRequest(TypedDict):
    """A request to set labels on artifacts. They replace the values of the same keys."""

    core_hashes: list[CoreHash]
    """The artifacts."""
    labels: dict[str, str]
    """The labels, by key."""


class SetNoteRequest(TypedDict):
    """A request to set the note of an artifact. It replaces any other note."""

    core_hash: CoreHash
    """The artifact."""
    text: str
    """The text."""


class SetTagAnswer(TypedDict):
    """The result of setting a tag."""

    changed: bool
    """Whether the vault changed; false if the artifact already has the tag."""
    moved_from: NotRequired[CoreHash | None]
    """The other artifact that had the tag before, if there was one."""


class SetTagRequest(TypedDict):
    """A request to set a tag on an artifact. A tag that another artifact has is moved."""

    core_hash: CoreHash
    """The artifact."""
    name: str
    """The tag."""


class ShowAnswer(TypedDict):
    """Everything that a vault contains about an artifact."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: list[AttributeSummary]
    """Its attributes, sorted by name and value."""
    captures: list[CaptureSummary]
    """Its captures in the order in which they were added."""
    created_at: NotRequired[str | None]
    """The latest creation time that it states, as it is stored."""
    extended_by: list[CoreHash]
    """The longest artifacts that extend it."""
    extensions: list[ExtensionSummary]
    """Their lengths, in the same order."""
    labels: NotRequired[dict[str, str]]
    """Its labels, by key."""
    links: list[LinkSummary]
    """Its links, outgoing ones first, by relation and target."""
    members: NotRequired[list[MemberSummary]]
    """The files of the preferred capture, if the kind has several."""
    mentions: list[MentionCount]
    """Number of digests that it mentions, by role."""
    note: NotRequired[str | None]
    """Its note."""
    pin: NotRequired[ArtifactPin | None]
    """Its pin."""
    pinned: bool
    """Whether it is pinned."""
    tags: list[str]
    """Its tags, by name."""


class ShowRequest(TypedDict):
    """A request for everything that a vault contains about an artifact."""

    artifact: CoreHash
    """The artifact."""


class SizedArtifact(TypedDict):
    """An artifact with its size."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    bytes: int
    """The size of its captures in bytes."""
    captures: int
    """Number of its captures."""


class SqlColumnSummary(TypedDict):
    """A column of a view."""

    about: str
    """A description of its values."""
    name: str
    """Its name."""
    sort: str
    """The type of its values: `number`, `real`, `text`, `time`, `hash`, `json` or `any`."""


class SqlSaveAnswer(TypedDict):
    """What was saved for other programs."""

    path: str
    """The path. Bytes that are not UTF-8 are replaced by U+FFFD."""
    path_bytes: NotRequired[str | None]
    """All bytes of the path as lowercase hex digits; missing if it is UTF-8."""
    bytes: int
    """Its size in bytes, without `metadata.json`."""
    rows: dict[str, int]
    """The number of rows of each table, by name."""


class SqlViewSummary(TypedDict):
    """A view that SQL queries can use."""

    about: str
    """A description of a row."""
    columns: list[SqlColumnSummary]
    """Its columns, in order."""
    in_file: bool
    """Whether it is in the vault's file, where any program that reads SQLite can use it."""
    name: str
    """Its name."""


class StatsAnswer(TypedDict):
    """Statistics of a vault. Stored bytes are measured and not read; removed artifacts are not counted."""

    dictionaries: NotRequired[int]
    """Number of dictionaries."""
    dictionary_bytes: NotRequired[int]
    """Their size in bytes."""
    differences: NotRequired[int]
    """Number of blobs that are stored as deltas."""
    file_bytes: NotRequired[int]
    """The size of the vault's file in bytes."""
    free_bytes: NotRequired[int]
    """The free part of that, in bytes."""
    mentions: NotRequired[int]
    """Number of mentioned digests in the index; the same digest in two captures counts twice."""
    search_bytes: NotRequired[int | None]
    """The size of the full-text search index in bytes; `None` if there is none."""
    stored_bytes: NotRequired[int]
    """The size of the blobs in bytes after compression, with the digests that were stripped from them and without the dictionaries."""
    artifacts: int
    """Number of artifacts."""
    blob_bytes: int
    """Their size in bytes before compression."""
    blobs: int
    """Number of blobs: each distinct file of a capture."""
    by: TimeBasis
    """The time that determines the members below."""
    by_label: NotRequired[LabelStats | None]
    """The content by the values of the requested key of labels."""
    bytes: int
    """The size of the captures in bytes, as they were received."""
    captures: int
    """Number of captures."""
    days: list[Day]
    """The content of each day that has any, in UTC, oldest first."""
    journal_entries: int
    """Number of journal entries."""
    kinds: list[KindTotals]
    """The content of each kind that has any, by id."""
    labels: int
    """Number of labels; one that several artifacts have counts for each of them."""
    largest: list[SizedArtifact]
    """The largest artifacts, largest first."""
    newest: NotRequired[DatedArtifact | None]
    """The newest artifact."""
    notes: int
    """Number of artifacts with a note."""
    oldest: NotRequired[DatedArtifact | None]
    """The oldest artifact."""
    pins: int
    """Number of pinned artifacts."""
    shared_blobs: int
    """Number of blobs that several captures share."""
    stated_links: int
    """Number of manual links."""
    tags: int
    """Number of tags."""
    undated: int
    """Number of artifacts without this time."""


class StatsRequest(TypedDict):
    """A request for statistics."""

    by: NotRequired[TimeBasis]
    """The time that determines the oldest, the newest and the day of an artifact."""
    label: NotRequired[str | None]
    """The key of labels by whose values artifacts are counted; no values are listed if there is none."""


class TagSummary(TypedDict):
    """A tag and its artifact."""

    core_hash: CoreHash
    """The core hash of the artifact."""
    name: str
    """The tag."""
    tagged_at: Timestamp
    """The time at which the tag was set."""


class TagsAnswer(TypedDict):
    """All tags."""

    tags: list[TagSummary]
    """The tags, by name."""


class TombstonesAnswer(TypedDict):
    """The removed artifacts."""

    next: NotRequired[int | None]
    """The end of this page, as long as there are more."""
    removed: list[RemovedArtifact]
    """The artifacts in the order in which they were removed. Those that were added again are not listed."""


class TombstonesRequest(TypedDict):
    """A request for the removed artifacts."""

    after: NotRequired[int | None]
    """The end of the previous page; the first page if there is none."""
    kind: NotRequired[str | None]
    """The id of a kind: only artifacts of this kind."""
    limit: NotRequired[int | None]
    """Maximum number of artifacts; unlimited if there is none."""


class UnfinishedConversationAnswer(TypedDict):
    """The calls so far of a run that is not finished."""

    conversation: Conversation
    """Its calls, in the order of their requests. The step of each is its number in the run."""
    run: NotRequired[UnfinishedRun | None]
    """The run; `None` if none that is not finished has the id or the name."""


class UnfinishedConversationRequest(TypedDict):
    """A request for the calls so far of a run that is not finished."""

    directory: NotRequired[str | None]
    """The directory with the calls of runs; the one beside the vault if none is given."""
    run: NotRequired[str | None]
    """The id of the run, or its name; the run that began last if none is given."""


class UnfinishedRun(TypedDict):
    """A run that is not finished."""

    calls: int
    """Number of calls that have ended."""
    failed: int
    """Number of calls without a complete answer, or with an error status."""
    labels: dict[str, str]
    """The labels that its artifacts will have, by key."""
    last_call_at: NotRequired[Timestamp | None]
    """When its last call was made."""
    models: list[str]
    """The models that were asked, sorted."""
    name: NotRequired[str | None]
    """The name that a client gave it."""
    run_id: str
    """Its id, which its artifacts will have."""
    started_at: NotRequired[Timestamp | None]
    """When it began."""
    state: UnfinishedRunState
    """Whether a process records it."""


class UnfinishedRunsAnswer(TypedDict):
    """The runs that are not finished."""

    runs: list[UnfinishedRun]
    """The runs, latest begun first. A run is one of them once its first call has ended."""


class UnfinishedRunsRequest(TypedDict):
    """A request for the runs that are not finished."""

    directory: NotRequired[str | None]
    """The directory with their calls; the one beside the vault if none is given."""
    filter: NotRequired[ArtifactFilter]
    """What the runs must match. Their kinds are those that calls are stored as, their time of creation is that at which they began, and they have labels; nothing else is known of them, so that other conditions and times select none."""


class UnpinRequest(TypedDict):
    """A request to remove the pin of an artifact."""

    core_hash: CoreHash
    """The artifact."""


class UnresolvedAnswer(TypedDict):
    """References to missing artifacts."""

    left_out: int
    """Number of references to data that no format defines that were omitted from this page."""
    missing: list[MissingArtifact]
    """What is missing: hashes in order, then names."""
    next: NotRequired[str | None]
    """The end of this page, as long as there are more: the last hash or name that was examined."""


class UnresolvedRequest(TypedDict):
    """A request for references to missing artifacts. Everything given must hold."""

    after: NotRequired[str | None]
    """The end of the previous page; the first page if there is none."""
    all: NotRequired[bool]
    """Whether to include references to data that no format defines, such as schemas."""
    kind: NotRequired[str | None]
    """The id of a kind: only references of artifacts of this kind."""
    limit: NotRequired[int | None]
    """Maximum number of missing artifacts; unlimited if there is none."""
    role: NotRequired[str | None]
    """Only references in this role, such as `reference`, or of this relation, such as `derived-from`."""


class VaultCopy(TypedDict):
    """A copy beside the vault."""

    path: str
    """The path. Bytes that are not UTF-8 are replaced by U+FFFD."""
    path_bytes: NotRequired[str | None]
    """All bytes of the path as lowercase hex digits; missing if it is UTF-8."""
    of: CopyOrigin
    """What it is a copy of."""


class VerifiedCapture(TypedDict):
    """A capture that was read, hashed and admitted again."""

    key_id: NotRequired[str | None]
    """The key id that the document states; `None` if there is none, or a very long one. The signature does not cover the id: it is reliable only if the signature is verified."""
    signature: NotRequired[SignatureName]
    """The result of checking it."""
    capture_hash: CaptureHash
    """Its hash."""
    computed_core_hash: NotRequired[CoreHash | None]
    """The core hash of its bytes; `None` if they are damaged or break a rule."""
    core_hash: CoreHash
    """The core hash of its artifact."""
    damage: NotRequired[str | None]
    """The damage of its bytes. If there is any, nothing else could be checked."""
    kind: str
    """The id of the kind of its artifact."""
    ok: bool
    """Whether its bytes are those that were stored, break no rule, and have the core hash of the artifact."""
    size: int
    """Its size in bytes."""
    violations: list[Violation]
    """The violations of the rules, warnings included."""
    violations_omitted: NotRequired[int | None]
    """Number of violations that are not listed; missing if there are none."""


class VerifyAnswer(TypedDict):
    """A page of verified captures."""

    captures: list[VerifiedCapture]
    """The captures: by core hash, and those of an artifact in the order in which they were added."""
    next: NotRequired[CoreHash | None]
    """The last artifact of this page; `None` if it is the last page."""


class VerifyRequest(TypedDict):
    """A request to read captures of stored artifacts, to hash their bytes, and to admit them again. Changes nothing."""

    after: NotRequired[CoreHash | None]
    """The last artifact of the previous page."""
    artifacts: NotRequired[list[CoreHash]]
    """Only these artifacts; all artifacts of the vault if empty."""
    capture: NotRequired[CaptureHash | None]
    """Only captures with this hash."""
    kind: NotRequired[str | None]
    """The id of a kind: only artifacts of this kind."""
    limit: NotRequired[int | None]
    """Maximum number of artifacts of this page; 100 if there is none."""
    require_signature: NotRequired[bool]
    """Whether captures without a signature are rejected, and, if there is a key, those whose signature has no matching key. Captures with a wrong signature are always rejected."""
    sample: NotRequired[ArtifactSample | None]
    """Only a sample of the artifacts."""


class ViewAnswer(TypedDict):
    """The transcript of an artifact, or a part of it."""

    added_at: Timestamp
    """The time at which its first capture was added."""
    core_hash: CoreHash
    """Its core hash."""
    kind: str
    """The name of its kind."""
    seen_at: Timestamp
    """The time at which one of its captures was last added or seen again."""
    attributes: list[AttributeSummary]
    """The attributes of the artifact, sorted by name and value."""
    audit: NotRequired[LastAudit | None]
    """The last audit, if the artifact states terms. Its effects are the first steps of the artifact."""
    capture_hash: CaptureHash
    """The capture that was read."""
    conversation: NotRequired[Conversation | None]
    """The conversation, if one was requested and the artifact has the bodies of its calls. The numbers of steps above are those of calls then, and its texts are complete."""
    core_checked: NotRequired[bool]
    """Whether the core hash of the artifact was computed from the bytes that were read, and is this one."""
    failed: int
    """Number of steps of the artifact that record a failure, as far as it was read."""
    labels: NotRequired[dict[str, str]]
    """The labels of the artifact, by key."""
    matching: int
    """Number of steps of the artifact that match the request, on this page or not."""
    next: NotRequired[int | None]
    """The number of the first step of the next page; `None` if this is the last."""
    parts: NotRequired[list[CoreHash]]
    """The artifacts with the steps, in their order, if the run of which this one is the first part is stored as several. The numbers of the steps of each follow those of the one before it."""
    previous: NotRequired[int | None]
    """The number of the first step of the previous page; `None` if this is the first, or if pages have no limit."""
    size: int
    """The size of the capture in bytes."""
    step_noun: str
    """The noun for a step, such as `interaction`."""
    steps: list[ViewStep]
    """The matching steps, in order; none if it is read as a conversation."""
    total: int
    """Number of steps of the artifact."""


class ViewBody(TypedDict):
    """A text, value or digest of a step."""

    digest: NotRequired[Digest | None]
    """The digest by which the content is known. The prompts and responses of other artifacts have the same."""
    format: BodyFormat
    """The format of `text`."""
    name: NotRequired[str | None]
    """Its name, if a step has several in one role, such as `before`."""
    omitted: int
    """Number of characters at the end that `text` does not contain."""
    role: BodyRole
    """Its role."""
    size: int
    """The size of the whole text, or of the bytes that are not text, in bytes."""
    source: BodySource
    """Where the text comes from."""
    text: NotRequired[str | None]
    """The text, JSON with a line for each value; only its beginning if `omitted` is not 0. `None` if there is none."""


# A request for the transcript of an artifact, or for a part of it.
ViewRequest = TypedDict(
    'ViewRequest',
    {
        'artifact': "CoreHash",
        'capture': "NotRequired[CaptureHash | None]",
        'check_core': "NotRequired[bool]",
        'conversation': "NotRequired[bool]",
        'from': "NotRequired[int]",
        'limit': "NotRequired[int | None]",
        'max_text': "NotRequired[int | None]",
        'only': "NotRequired[ViewFilter | None]",
        'partial': "NotRequired[bool]",
        'recorded': "NotRequired[bool]",
        'to': "NotRequired[int | None]",
    },
)


# A step of a transcript.
ViewStep = TypedDict(
    'ViewStep',
    {
        'answers': "NotRequired[int | None]",
        'bodies': "list[ViewBody]",
        'class': "StepClass",
        'digest': "NotRequired[Digest | None]",
        'duration_ms': "NotRequired[int | None]",
        'failed': "bool",
        'index': "int",
        'recorded': "NotRequired[ViewBody | None]",
        'size': "NotRequired[int | None]",
        'status': "NotRequired[str | None]",
        'time': "NotRequired[Timestamp | None]",
        'title': "NotRequired[str | None]",
        'tokens_in': "NotRequired[int | None]",
        'tokens_out': "NotRequired[int | None]",
        'type': "str",
    },
)


class Violation(TypedDict):
    """A broken rule."""

    message: str
    """The description."""
    path: str
    """The location in the document, in the notation of the format's own tools."""
    rule_id: str
    """The id of the rule."""
    severity: Severity
    """Whether it rejects the artifact."""


class WireAuditAnswer(TypedDict):
    """What a session and recorded calls have in common, and where they contradict each other."""

    auxiliary: int
    """Number of calls in the run whose requests offer no tools although those of the session do, and that the session does not have: programs ask for titles and decide between models with them."""
    contradictions: list[WireContradiction]
    """The contradictions, in the order of the calls of the session, with those of calls that only the run has at the end."""
    matched: int
    """Number of calls that are in both."""
    run: NotRequired[CoreHash | None]
    """The run; `None` if none in the vault has an answer of the session. Then nothing was compared."""
    run_calls: int
    """Number of calls in the run."""
    session_calls: int
    """Number of calls in the session, and in the run."""


class WireAuditRequest(TypedDict):
    """A request for the contradictions between the session of an agent and recorded calls."""

    run: NotRequired[CoreHash | None]
    """The run with the recorded calls. Without it, that run is taken which has the most answers of the session."""
    session: CoreHash
    """The agent session."""


class WireContradiction(TypedDict):
    """A contradiction."""

    kind: WireContradictionKind
    """What differs."""
    message: str
    """What each of the two says."""
    run_step: NotRequired[int | None]
    """The number of the step with the request in the run, from 0."""
    session_step: NotRequired[int | None]
    """The number of the record with the call in the session, from 0."""


# A match of a condition.
ArtifactMatch: TypeAlias = ArtifactMatchIndex | ArtifactMatchPointer | ArtifactMatchHash | ArtifactMatchName | ArtifactMatchSignature | ArtifactMatchNote | ArtifactMatchTag | ArtifactMatchPinned | ArtifactMatchKey


# A request for the names of the attributes that artifacts have.
AttributeNamesRequest: TypeAlias = dict[str, Any]


# The format of a body.
BodyFormat: TypeAlias = Literal['text', 'json', 'binary', 'digest']


# The role of a body in its step.
BodyRole: TypeAlias = Literal['context', 'prompt', 'response', 'arguments', 'result', 'error', 'state', 'details', 'content']


# Where the text of a body comes from.
BodySource: TypeAlias = BodySourceRecorded | BodySourceResolved | BodySourceNotRecorded


# A request to build the search index, or to rebuild it. Others can use the vault during this. If it is interrupted, the next search completes the index.
BuildSearchIndexRequest: TypeAlias = dict[str, Any]


# A type of calendar period, in UTC.
CalendarPeriod: TypeAlias = Literal['hour', 'day', 'week', 'month', 'year']


# The hash of a capture: one exact byte form of an artifact.
CaptureHash: TypeAlias = str


# The type of a change.
ChangeType: TypeAlias = Literal['changed', 'moved', 'removed', 'inserted', 'ephemeral', 'spelling']


# How a vault was copied.
CopyMode: TypeAlias = Literal['verbatim', 'merged']


# The original of a copy beside the vault.
CopyOrigin: TypeAlias = Literal['log']


# The core hash of an artifact.
CoreHash: TypeAlias = str


# Data of an artifact that a list contains on request.
Detail: TypeAlias = Literal['attributes', 'captures', 'annotations']


# Which changes an answer contains.
DiffExtent: TypeAlias = Literal['all', 'first', 'counts']


# A SHA-256 digest.
Digest: TypeAlias = str


# The first digits of a SHA-256 digest, at least 6.
DigestPrefix: TypeAlias = str


# The direction of an edge, seen from an artifact.
Direction: TypeAlias = Literal['out', 'in']


# What was done with a document.
DocumentOutcome: TypeAlias = Literal['added', 'capture', 'present', 'restored', 'rejected', 'skipped']


# A request to remove the search index. [`ReclaimRequest`](crate::vault::maintenance::ReclaimRequest) frees the space.
DropSearchIndexRequest: TypeAlias = dict[str, Any]


# A matching passage of a field.
FieldMatch: TypeAlias = FieldMatch0 | FieldMatch1


# A condition on artifacts.
FindCondition: TypeAlias = FindConditionMention | FindConditionAbout | FindConditionAttribute | FindConditionAttributeLike | FindConditionRange | FindConditionSignature | FindConditionNote | FindConditionTagged | FindConditionPinned | FindConditionLabel | FindConditionLabelLike


# The order of artifacts.
FindOrder: TypeAlias = Literal['last-seen'] | Literal['first-seen'] | Literal['created'] | Literal['core'] | Literal['kind'] | AttributeMembers


# A pair of artifacts that fork.
ForkSummary: TypeAlias = ForkSummaryHeader | ForkSummaryInputs | ForkSummaryRunId


# What was done with a link, tag, note or label of a bundle.
ImportOutcome: TypeAlias = Literal['present', 'linked', 'not_linked', 'tagged', 'not_tagged', 'noted', 'not_noted', 'labeled', 'not_labeled']


# A request for the last journal entry.
JournalHeadRequest: TypeAlias = dict[str, Any]


# A JSON value, as it is recorded.
JsonText: TypeAlias = Any


# A JSON value. Numbers that neither 64 bits nor a double represent exactly are strings of their digits.
JsonValue: TypeAlias = Any


# A request for the keys of the labels that artifacts have.
LabelKeysRequest: TypeAlias = dict[str, Any]


# How surely linked artifacts belong together.
LinkStrength: TypeAlias = Literal['stated', 'coincident']


# A part of a message.
MessagePart: TypeAlias = MessagePartText | MessagePartThinking | MessagePartMedia | MessagePartToolCall | MessagePartToolResult | MessagePartRefusal | MessagePartEmbeddings | MessagePartUnrecorded | MessagePartOther


# The author of a message.
MessageRole: TypeAlias = Literal['system', 'user', 'assistant', 'tool']


# A request for all pinned artifacts.
PinsRequest: TypeAlias = dict[str, Any]


# A location in an artifact.
PlaceSummary: TypeAlias = PlaceSummaryIndex | PlaceSummaryPointer


# A request to remove unreferenced data and to shrink the vault's files to their minimum size. Afterwards, no removed data remains in them.
ReclaimRequest: TypeAlias = dict[str, Any]


# A request for what reclaiming disk space would remove.
ReclaimableRequest: TypeAlias = dict[str, Any]


# A part of the vault's files that may still contain removed bytes.
RemnantSummary: TypeAlias = RemnantSummary0 | RemnantSummary1 | RemnantSummary2 | RemnantSummary3 | RemnantSummary4 | RemnantSummary5


# What a text refers to.
ResolveAnswer: TypeAlias = ResolveAnswerArtifact | ResolveAnswerCapture | ResolveAnswerMentioned | ResolveAnswerAmbiguous | ResolveAnswerRemoved | ResolveAnswerNotFound


# Something that a text may refer to.
ResolveCandidate: TypeAlias = ResolveCandidateArtifact | ResolveCandidateCapture | ResolveCandidateMentioned


# What runs are grouped by.
RunGrouping: TypeAlias = RunGroupingDay | RunGroupingLabel | RunGroupingAttribute


# A request for the state of the search index.
SearchIndexRequest: TypeAlias = dict[str, Any]


# The severity of a rule: whether breaking it rejects the artifact.
Severity: TypeAlias = Literal['error', 'warning']


# The state of the signature of a capture; the preferred first.
SignatureName: TypeAlias = Literal['verified', 'unsigned', 'unchecked', 'wrong']


# The class of a step.
StepClass: TypeAlias = Literal['model', 'tool', 'work', 'error', 'output', 'control', 'term', 'member', 'content']


# A request for all tags.
TagsRequest: TypeAlias = dict[str, Any]


# One of the times that an artifact has.
TimeBasis: TypeAlias = Literal['first-seen', 'last-seen', 'created', 'finished']


# A time in UTC with milliseconds, as RFC 3339.
Timestamp: TypeAlias = str


# The state of a run that is not finished.
UnfinishedRunState: TypeAlias = Literal['recording', 'interrupted']


# An amount of US dollars.
UsdAmount: TypeAlias = str


# What was done with a value of a file.
ValueOutcome: TypeAlias = Literal['not_mapped', 'assumed']


# The verdict on an effect.
Verdict: TypeAlias = Literal['pending', 'inconclusive', 'verified', 'failed']


# A selection of steps.
ViewFilter: TypeAlias = Literal['tools', 'errors']


# What a session and a recorded call say differently.
WireContradictionKind: TypeAlias = Literal['answer', 'tokens', 'message', 'tool-result', 'only-in-session', 'only-in-run']
