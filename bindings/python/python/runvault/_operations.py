"""Generated from docs/api.json by generate_types.py."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, Literal, overload

from . import _types as t


class Operations(ABC):
    """The operations of a vault, by name."""

    @abstractmethod
    def _run(self, name: str, request: str) -> str: ...

    @overload
    def run(self, name: Literal['add-link'], request: t.AddLinkRequest) -> t.AnnotateAnswer:
        """Add a link between two artifacts manually."""

    @overload
    def run(self, name: Literal['answers'], request: t.AnswersRequest) -> t.AnswersAnswer:
        """Compare the answers to the same prompts."""

    @overload
    def run(self, name: Literal['attribute-names'], request: t.AttributeNamesRequest) -> t.AttributeNamesAnswer:
        """List the names of the attributes that artifacts have."""

    @overload
    def run(self, name: Literal['attribute-values'], request: t.AttributeValuesRequest) -> t.AttributeValuesAnswer:
        """List the values of an attribute."""

    @overload
    def run(self, name: Literal['audit'], request: t.AuditRequest) -> t.AuditAnswer:
        """Audit runs against a contract."""

    @overload
    def run(self, name: Literal['backup'], request: t.BackupRequest) -> t.BackupAnswer:
        """Copy the vault to another file and check the copy."""

    @overload
    def run(self, name: Literal['build-search-index'], request: t.BuildSearchIndexRequest) -> t.BuildSearchIndexAnswer:
        """Build the search index, or rebuild it."""

    @overload
    def run(self, name: Literal['captures'], request: t.CapturesRequest) -> t.CapturesAnswer:
        """List the captures of an artifact."""

    @overload
    def run(self, name: Literal['check-journal'], request: t.CheckJournalRequest) -> t.CheckJournalAnswer:
        """Check the journal, and compare the catalog with it."""

    @overload
    def run(self, name: Literal['copy'], request: t.CopyRequest) -> t.CopyAnswer:
        """Copy everything in the vault into another one."""

    @overload
    def run(self, name: Literal['days'], request: t.DaysRequest) -> t.DaysAnswer:
        """Count artifacts by day."""

    @overload
    def run(self, name: Literal['diff'], request: t.DiffRequest) -> t.DiffAnswer:
        """Compare two artifacts and show where they diverge."""

    @overload
    def run(self, name: Literal['digests'], request: t.DigestsRequest) -> t.DigestsAnswer:
        """Resolve the first digits of a digest that artifacts mention."""

    @overload
    def run(self, name: Literal['drop-search-index'], request: t.DropSearchIndexRequest) -> t.DropSearchIndexAnswer:
        """Remove the search index."""

    @overload
    def run(self, name: Literal['facets'], request: t.FacetsRequest) -> t.FacetsAnswer:
        """Count runs by the most frequent values of attributes and labels."""

    @overload
    def run(self, name: Literal['find'], request: t.FindRequest) -> t.FindAnswer:
        """Find artifacts by kind, mention, attribute, signature, note, tag or time."""

    @overload
    def run(self, name: Literal['forget'], request: t.ForgetRequest) -> t.ForgetAnswer:
        """Apply a retention policy."""

    @overload
    def run(self, name: Literal['forks'], request: t.ForksRequest) -> t.ForksAnswer:
        """List traces and run packs of one run that diverge."""

    @overload
    def run(self, name: Literal['forks-of'], request: t.ForksOfRequest) -> t.ForksOfAnswer:
        """List the forks of some artifacts."""

    @overload
    def run(self, name: Literal['journal'], request: t.JournalRequest) -> t.JournalAnswer:
        """List journal entries."""

    @overload
    def run(self, name: Literal['journal-head'], request: t.JournalHeadRequest) -> t.JournalHead:
        """Show the last journal entry."""

    @overload
    def run(self, name: Literal['label-keys'], request: t.LabelKeysRequest) -> t.LabelKeysAnswer:
        """List the keys of labels."""

    @overload
    def run(self, name: Literal['label-values'], request: t.LabelValuesRequest) -> t.LabelValuesAnswer:
        """List the values of a key of labels."""

    @overload
    def run(self, name: Literal['labels'], request: t.LabelsRequest) -> t.LabelsAnswer:
        """List the labels of an artifact."""

    @overload
    def run(self, name: Literal['links'], request: t.LinksRequest) -> t.LinksAnswer:
        """List the links of an artifact."""

    @overload
    def run(self, name: Literal['list'], request: t.ListRequest) -> t.ListAnswer:
        """List runs and other artifacts with their measurements."""

    @overload
    def run(self, name: Literal['near'], request: t.NearRequest) -> t.NearAnswer:
        """Find what is similar to conditions that no artifact matches."""

    @overload
    def run(self, name: Literal['note'], request: t.NoteRequest) -> t.NoteAnswer:
        """Show the note of an artifact."""

    @overload
    def run(self, name: Literal['path'], request: t.PathRequest) -> t.PathAnswer:
        """Find the shortest path of links between two artifacts."""

    @overload
    def run(self, name: Literal['pin'], request: t.PinRequest) -> t.AnnotateAnswer:
        """Protect an artifact from removal."""

    @overload
    def run(self, name: Literal['pins'], request: t.PinsRequest) -> t.PinsAnswer:
        """List pinned artifacts."""

    @overload
    def run(self, name: Literal['reclaim'], request: t.ReclaimRequest) -> t.ReclaimAnswer:
        """Reclaim disk space."""

    @overload
    def run(self, name: Literal['reclaimable'], request: t.ReclaimableRequest) -> t.ReclaimableAnswer:
        """Show what reclaiming disk space would remove."""

    @overload
    def run(self, name: Literal['recordings'], request: t.RecordingsRequest) -> t.RecordingsAnswer:
        """List the recordings in which a prompt can be looked up."""

    @overload
    def run(self, name: Literal['remove'], request: t.RemoveRequest) -> t.RemoveAnswer:
        """Remove artifacts."""

    @overload
    def run(self, name: Literal['remove-labels'], request: t.RemoveLabelsRequest) -> t.AnnotateAnswer:
        """Remove labels from artifacts."""

    @overload
    def run(self, name: Literal['remove-link'], request: t.RemoveLinkRequest) -> t.AnnotateAnswer:
        """Remove a manually added link."""

    @overload
    def run(self, name: Literal['remove-note'], request: t.RemoveNoteRequest) -> t.AnnotateAnswer:
        """Remove an artifact's note."""

    @overload
    def run(self, name: Literal['remove-tag'], request: t.RemoveTagRequest) -> t.AnnotateAnswer:
        """Remove a tag."""

    @overload
    def run(self, name: Literal['replay'], request: t.ReplayRequest) -> t.ReplayAnswer:
        """Look up the recorded response to a prompt."""

    @overload
    def run(self, name: Literal['resolve'], request: t.ResolveRequest) -> t.ResolveAnswer:
        """Resolve a hash, a prefix, a tag or a run id."""

    @overload
    def run(self, name: Literal['responses'], request: t.ResponsesRequest) -> t.ResponsesAnswer:
        """List the recorded responses of a session or a run."""

    @overload
    def run(self, name: Literal['rules'], request: t.RulesRequest) -> t.RulesAnswer:
        """List or explain validation rules."""

    @overload
    def run(self, name: Literal['run-stats'], request: t.RunStatsRequest) -> t.RunStatsAnswer:
        """Count runs, failures, tokens, latency and costs by model, tool, agent, label or day."""

    @overload
    def run(self, name: Literal['search'], request: t.SearchRequest) -> t.SearchAnswer:
        """Search the text of artifacts."""

    @overload
    def run(self, name: Literal['search-index'], request: t.SearchIndexRequest) -> t.SearchIndexAnswer:
        """Return the state of the search index."""

    @overload
    def run(self, name: Literal['set-labels'], request: t.SetLabelsRequest) -> t.AnnotateAnswer:
        """Set labels on artifacts."""

    @overload
    def run(self, name: Literal['set-note'], request: t.SetNoteRequest) -> t.AnnotateAnswer:
        """Set an artifact's note."""

    @overload
    def run(self, name: Literal['set-tag'], request: t.SetTagRequest) -> t.SetTagAnswer:
        """Set a tag on an artifact."""

    @overload
    def run(self, name: Literal['show'], request: t.ShowRequest) -> t.ShowAnswer:
        """Describe an artifact."""

    @overload
    def run(self, name: Literal['stats'], request: t.StatsRequest) -> t.StatsAnswer:
        """Show counts, disk usage and growth."""

    @overload
    def run(self, name: Literal['tags'], request: t.TagsRequest) -> t.TagsAnswer:
        """List tags."""

    @overload
    def run(self, name: Literal['tombstones'], request: t.TombstonesRequest) -> t.TombstonesAnswer:
        """List removed artifacts."""

    @overload
    def run(self, name: Literal['unfinished-conversation'], request: t.UnfinishedConversationRequest) -> t.UnfinishedConversationAnswer:
        """Read the calls so far of a run that is being recorded."""

    @overload
    def run(self, name: Literal['unfinished-runs'], request: t.UnfinishedRunsRequest) -> t.UnfinishedRunsAnswer:
        """List the runs that are being recorded."""

    @overload
    def run(self, name: Literal['unpin'], request: t.UnpinRequest) -> t.AnnotateAnswer:
        """Unpin an artifact."""

    @overload
    def run(self, name: Literal['unresolved'], request: t.UnresolvedRequest) -> t.UnresolvedAnswer:
        """List references to missing artifacts."""

    @overload
    def run(self, name: Literal['verify'], request: t.VerifyRequest) -> t.VerifyAnswer:
        """Verify stored artifacts."""

    @overload
    def run(self, name: Literal['view'], request: t.ViewRequest) -> t.ViewAnswer:
        """Read an artifact as a transcript."""

    @overload
    def run(self, name: Literal['wire-audit'], request: t.WireAuditRequest) -> t.WireAuditAnswer:
        """Compare the session of an agent with the recorded calls of models."""

    def run(self, name: str, request: Any) -> Any:
        """Runs the operation of a name. `docs/api.json` describes all of them."""
        return json.loads(self._run(name, json.dumps(request)))
