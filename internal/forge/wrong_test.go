package forge_test

import (
	"strings"
	"testing"

	"sluice/internal/forge"
	"sluice/tools/conform"
	"sluice/tools/forgestub"
)

// TestWrongAnswers: JSON of another kind, or about something else, says nothing: not that a pull request is closed, and
// not that a commit has no checks.
func TestWrongAnswers(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge wrong", "an answer without what was asked for, or about another thing, is unreadable")
	h, f := hub(t)
	sha := push(t, f, "main")
	other := strings.Repeat("0", 40)
	for path, bodies := range map[string][]string{
		"pulls/1": {"{}", "null", `{"message": "maintenance"}`, `{"number": 2, "state": "closed", "head": {"sha": "a"}}`,
			`{"number": 1, "state": "locked", "head": {"sha": "a"}}`, `{"number": 1, "state": "closed"}`},
		"check-runs": {"{}", "null", `{"check_runs": null}`, `{"check_runs": [{"name": "a", "head_sha": "` + other + `"}]}`},
		"statuses":   {"null", "{}"},
	} {
		for _, body := range bodies {
			f.Spoil(forgestub.Fault{Path: path, Status: 200, Body: body})
			var err error
			if strings.HasPrefix(path, "pulls") {
				_, err = h.Pull(t.Context(), 1)
			} else {
				_, err = h.Checks(t.Context(), sha)
			}
			if !forge.Is(err, forge.Odd) {
				t.Errorf("%s answers %s: %v", path, body, err)
			}
			f.Heal()
		}
	}
}

// TestShortPages: a forge may put fewer items on a page than it is asked for, and says if there are more.
func TestShortPages(t *testing.T) {
	t.Parallel()
	conform.Rule(t, "12-forge short pages", "a list goes on where the forge says so, whatever a page has")
	h, f := hub(t)
	f.Cap(30)
	for range 90 {
		f.Comment(1, "ann", "x")
	}
	last := f.Comment(1, "ann", "/sluice")
	if all, err := h.Comments(t.Context(), 1); err != nil || len(all) != 91 || all[90].ID != last {
		t.Errorf("%d comments: %v", len(all), err)
	}
}

// TestStatuses: of each name the newest counts, and none of gh's own account, which agents may hold.
func TestStatuses(t *testing.T) {
	t.Parallel()
	h, f := hub(t)
	sha := push(t, f, "main")
	f.Status(sha, "own", "success", forgestub.Me)
	f.Status(sha, "ci", "pending", "bot")
	f.Status(sha, "ci", "failure", "bot")
	f.Status(sha, "ci", "success", strings.ToUpper(forgestub.Me))
	f.Status(sha, "lint", "failure", "bot")
	f.Status(sha, "lint", "success", "bot")
	f.Status(sha, "slow", "pending", "bot")
	got := map[string]string{}
	all, err := h.Checks(t.Context(), sha)
	for _, c := range all {
		got[c.Name] = c.State
	}
	if err != nil || len(all) != 3 || got["ci"] != forge.Red || got["lint"] != forge.Green || got["slow"] != forge.Pending {
		t.Errorf("%+v %v", all, err)
	}
}

// TestRenamed: the first name of a renamed repo leads to it, but gh sends nothing there. Its branches are no fork's.
func TestRenamed(t *testing.T) {
	t.Parallel()
	h, f := hub(t)
	push(t, f, "main")
	push(t, f, "sluice/x-1")
	p, err := h.Create(t.Context(), "sluice/x-1", "main", "T", "B", false)
	if err != nil {
		t.Fatal(err)
	}
	f.Rename("times")
	if all, err := h.PullsFrom(t.Context(), "sluice/x-1"); err != nil || len(all) != 1 || all[0].Number != p.Number {
		t.Errorf("%+v %v", all, err)
	}
	if _, err := h.Say(t.Context(), p.Number, "x"); !forge.Is(err, forge.Missing) || !strings.Contains(err.Error(), "the repo was renamed") {
		t.Error(err)
	}
}

// TestRefusedWords: whatever form the forge's reasons have, they are said.
func TestRefusedWords(t *testing.T) {
	t.Parallel()
	h, f := hub(t)
	for body, want := range map[string]string{
		`{"message": "Validation Failed", "errors": [{"resource": "PullRequest", "field": "base", "code": "invalid"}]}`: "Validation Failed: base invalid",
		`{"message": "Validation Failed", "errors": [{"code": "custom", "message": "No commits between a and b"}]}`:     "Validation Failed: No commits between a and b",
		`{"message": "Validation Failed", "errors": ["Could not resolve to a node"]}`:                                   "Validation Failed: Could not resolve to a node",
		`{"message": "No.", "errors": "because"}`:                                                                       "No.: because",
		`{"message": "No.", "errors": {"odd": 1}}`:                                                                      "No.",
	} {
		f.Spoil(forgestub.Fault{Path: "pulls", Status: 422, Body: body})
		if _, err := h.Create(t.Context(), "b", "main", "T", "B", false); !forge.Is(err, forge.Refused) || !strings.HasSuffix(err.Error(), ": "+want) {
			t.Errorf("%s: %v", body, err)
		}
		f.Heal()
	}
}
