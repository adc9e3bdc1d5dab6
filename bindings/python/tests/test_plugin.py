"""The plugin for pytest: a test suite that is run several times, with the client `openai`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runvault import Vault

if TYPE_CHECKING:
    from conftest import Upstream

openai = pytest.importorskip("openai", reason="openai is not installed")

SUITE = """
    import openai
    import pytest

    def ask(prompt, **more):
        messages = [{"role": "system", "content": "be short"}, {"role": "user", "content": prompt}]
        client = openai.OpenAI(max_retries=0)
        return client.chat.completions.create(model="m-1", messages=messages, **more)

    @pytest.mark.runvault("greeting")
    def test_greeting():
        assert "hello" in ask("hello").choices[0].message.content

    def test_stream(runvault):
        words = [chunk.choices[0].delta.content or "" for chunk in ask("stream this", stream=True)]
        assert "this" in "".join(words)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, upstream: Upstream, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A suite whose calls are recorded from the server."""
    pytester.makepyfile(test_agent=SUITE)
    pytester.makeini(f"[pytest]\nrunvault_upstreams = openai={upstream.url}\n")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-a-key")
    monkeypatch.setenv("COLUMNS", "400")
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_the_first_run_records_and_later_ones_replay(
    suite: pytest.Pytester, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(suite).assert_outcomes(passed=2)
    with Vault.open(suite.path / "recordings.vault") as vault:
        labels = {"recording": "greeting", "test": "test_agent.py::test_greeting", "result": "passed"}
        assert len(list(vault.find(kinds=["rpk"], labels=labels))) == 1
        assert len(list(vault.find(kinds=["rpk"], labels={"test": "test_agent.py::test_stream"}))) == 1
        recorded = {hit["core_hash"] for hit in vault.find()}
    upstream.stop()
    monkeypatch.delenv("OPENAI_API_KEY")
    run(suite).assert_outcomes(passed=2)
    run(suite, "--runvault-mode=replay", "--runvault-unused=fail").assert_outcomes(passed=2)
    with Vault.open(suite.path / "recordings.vault") as vault:
        assert {hit["core_hash"] for hit in vault.find()} == recorded


def test_a_changed_prompt_is_named(suite: pytest.Pytester, upstream: Upstream) -> None:
    run(suite).assert_outcomes(passed=2)
    upstream.stop()
    changed = SUITE.replace('ask("hello")', 'ask("hello again")').replace('assert "hello"', 'assert "again"')
    suite.makepyfile(test_agent=changed)
    result = run(suite)
    result.assert_outcomes(passed=1, failed=1)
    reason = 'messages[1].content differs: recorded "hello", requested "hello again"'
    result.stdout.fnmatch_lines_random([
        f"E*NotRecordedError: a request was not recorded: {reason.replace('[', '[[]')} (openai *chat/completions)",
        f"FAILED test_agent.py::test_greeting - *NotRecordedError: a request was not recorded: {reason.replace('[', '[[]')}*",
    ])
    # The traceback ends in the test, and not in the client.
    assert "_base_client.py" not in result.stdout.str() and "client.chat.completions.create" in result.stdout.str()


def test_a_request_that_the_test_does_not_notice_fails_it(suite: pytest.Pytester) -> None:
    run(suite).assert_outcomes(passed=2)
    careless = SUITE + """
    @pytest.mark.runvault("greeting")
    def test_careless():
        try:
            ask("never asked")
        except openai.BadRequestError:
            pass
"""
    suite.makepyfile(test_agent=careless)
    result = run(suite, "-k", "careless")
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(["*a request was not recorded: *requested \"never asked\"*"])


def test_recorded_calls_that_are_not_made_fail_when_asked(suite: pytest.Pytester) -> None:
    run(suite).assert_outcomes(passed=2)
    suite.makepyfile(test_agent=SUITE.replace('ask("hello").choices[0].message.content', '"hello"'))
    run(suite).assert_outcomes(passed=2)
    result = run(suite, "--runvault-unused=fail")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*UnusedRecordingsError: 1 recorded call was not made: step 0: openai chat.completions*"])
    suite.makepyfile(test_agent=SUITE.replace('runvault("greeting")', 'runvault("greeting", unused="fail")'))
    run(suite).assert_outcomes(passed=2)


def test_what_a_failed_test_recorded_is_not_replayed(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_agent=SUITE.replace('assert "hello"', 'assert "bye"'))
    run(suite, "-k", "greeting").assert_outcomes(failed=1, deselected=1)
    with Vault.open(suite.path / "recordings.vault") as vault:
        assert len(list(vault.find(kinds=["rpk"], labels={"recording": "greeting", "result": "failed"}))) == 1
    result = run(suite, "-k", "greeting", "--runvault-mode=replay")
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["*NotRecordedError: greeting was not recorded; --runvault-mode=auto records it"])
    suite.makepyfile(test_agent=SUITE)
    run(suite, "-k", "greeting").assert_outcomes(passed=1, deselected=1)
    run(suite, "-k", "greeting", "--runvault-mode=replay").assert_outcomes(passed=1, deselected=1)


def test_modes_record_again_and_pass(suite: pytest.Pytester, upstream: Upstream) -> None:
    run(suite).assert_outcomes(passed=2)
    run(suite, "--runvault-mode=pass").assert_outcomes(passed=2)
    run(suite, "--runvault-mode=record").assert_outcomes(passed=2)
    with Vault.open(suite.path / "recordings.vault") as vault:
        assert len(list(vault.find(kinds=["rpk"]))) == 4
    upstream.stop()
    run(suite, "--runvault-mode=record").assert_outcomes(failed=2)


def test_rules_of_comparison_are_those_of_the_gateway(suite: pytest.Pytester, upstream: Upstream) -> None:
    marker = """runvault("greeting", ignore=["temperature"], normalize=["uuid", "s/day \\d+/DAY/"])"""
    text = SUITE.replace('runvault("greeting")', marker)
    suite.makepyfile(test_agent=text.replace('ask("hello")', 'ask("hello on day 1", temperature=1)'))
    run(suite, "-k", "greeting").assert_outcomes(passed=1, deselected=1)
    upstream.stop()
    suite.makepyfile(test_agent=text.replace('ask("hello")', 'ask("hello on day 22", temperature=0)'))
    run(suite, "-k", "greeting").assert_outcomes(passed=1, deselected=1)
    suite.makepyfile(test_agent=text.replace('ask("hello")', 'ask("hello on night 1", temperature=0)'))
    run(suite, "-k", "greeting").assert_outcomes(failed=1, deselected=1)


def test_settings_that_are_not_known_are_errors(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_agent=SUITE.replace('runvault("greeting")', 'runvault("greeting", cassette="x")'))
    result = run(suite, "-k", "greeting")
    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["*the marker runvault takes a name and ignore, mode, *"])


def test_workers_of_xdist_record_and_replay(suite: pytest.Pytester, upstream: Upstream) -> None:
    pytest.importorskip("xdist", reason="pytest-xdist is not installed")
    for mode in ("auto", "replay"):
        suite.runpytest_subprocess("-n", "2", f"--runvault-mode={mode}").assert_outcomes(passed=2)
        upstream.stop()
