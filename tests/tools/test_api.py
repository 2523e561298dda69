"""The public interface changes only with a line in the changelog."""

import pytest

from tools.api import SNAPSHOT, differences, find, interface, newest_changes, renewed

NOW = interface()
CHANGELOG = "# Changelog\n\n## 2.0\n\n- new\n\n## 1.0\n\n- old\n"


def test_the_interface_is_the_one_that_was_written_down():
    changes = "\n".join(differences(SNAPSHOT.read_text(), NOW))
    assert not changes, (
        f"the public interface changed:\n{changes}\n"
        "if that is meant, write a line into CHANGELOG.md, then run `python -m tools.api`"
    )


def test_the_interface_has_names_signatures_settings_commands_and_formats():
    assert "name melee.Agent" in NOW
    assert any(
        line.startswith("call melee.Agent(actions=None, explorer='melee', *,") for line in NOW
    )
    assert "attribute melee.Agent.n_learned_" in NOW
    assert "error melee.InputError is MeleeError, ValueError" in NOW
    assert "explorer linucb:alpha=0.1" in NOW
    assert "learner ridge" in NOW
    assert "call melee.client.AsyncClient.learn(decision, reward)" in NOW
    assert any(line.startswith("call melee.journal.Journal(") for line in NOW)
    assert "command melee bench --suite (required)" in NOW
    assert "command melee journal verify PLACE (required)" in NOW
    for module in ("agent.file", "benchmark.store", "artefact"):
        assert any(line.startswith(f"format of melee.{module} is ") for line in NOW)


def test_no_line_depends_on_this_process():
    assert [line for line in NOW if " at 0x" in line or "/home" in line] == []


def test_what_went_and_what_came_is_named():
    before = "# head\n\nname melee.A\nname melee.B\n"
    assert differences(before, ["name melee.B", "name melee.C"]) == [
        "- name melee.A",
        "+ name melee.C",
    ]


def test_a_change_needs_a_line_in_the_newest_section_of_the_changelog():
    first = renewed("", ["name melee.A"], CHANGELOG)
    with pytest.raises(SystemExit, match=r"(?s)did not:\n\+ name melee.B\nwrite a line"):
        renewed(first, ["name melee.A", "name melee.B"], CHANGELOG)
    with pytest.raises(SystemExit, match="write a line"):  # history is not where it belongs
        renewed(first, ["name melee.B"], CHANGELOG.replace("- old", "- old, and B"))
    told = CHANGELOG.replace("- new", "- new\n- B")
    second = renewed(first, ["name melee.A", "name melee.B"], told)
    assert "\nname melee.B\n" in second
    assert newest_changes(told) in second


def test_a_line_in_the_changelog_alone_changes_nothing():
    first = renewed("", ["name melee.A"], CHANGELOG)
    assert renewed(first, ["name melee.A"], CHANGELOG.replace("- new", "- newer")) == first


def test_a_dotted_name_is_found_in_modules_not_yet_imported():
    assert find("melee.testing.check_explorer").__name__ == "check_explorer"
