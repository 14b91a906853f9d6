package web

import (
	"context"
	"strings"
	"testing"

	"sluice/internal/workspace"
)

// TestReposOutliveARequest: a browser that goes while the repos are read takes none from the others.
func TestReposOutliveARequest(t *testing.T) {
	p := newSite(t)
	p.later(2 * knownFor)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	_, _ = p.s.repos.all(gone) // nobody reads the answer
	known, err := p.s.repos.all(t.Context())
	if err != nil || len(known) != 1 || known[0].Name != "shop" {
		t.Errorf("%v %v", known, err)
	}
}

// TestRepoNames: a name is that of the folder, unless another repo has it as its name or id; an id always
// counts.
func TestRepoNames(t *testing.T) {
	all := namedRepos([]*workspace.Workspace{{Root: "/a/shop", ID: "shop-01"}, {Root: "/b/shop", ID: "shop-02"},
		{Root: "/c/shop-01", ID: "shop-01-03"}, {Root: "/d/own-04", ID: "own-04"}, {Root: "/e/till", ID: "till-05"}})
	seen := map[string]bool{}
	for i, want := range []string{"shop~", "shop~", "shop-01~", "own-04", "till"} {
		name := all[i].Name
		if strings.TrimRight(name, "0123456789abcdef") != strings.TrimRight(want, "0123456789abcdef") || seen[name] ||
			strings.HasSuffix(want, "~") == (name == want) {
			t.Errorf("%s is %q, want %s…", all[i].Root, name, want)
		}
		seen[name] = true
	}
	p := newSite(t)
	p.s.repos.known, p.s.repos.read = all, p.con.Now()
	for name, root := range map[string]string{"shop-01": "/a/shop", "shop-02": "/b/shop", all[2].Name: "/c/shop-01",
		"own-04": "/d/own-04", "till": "/e/till", "till-05": "/e/till"} {
		if at, err := p.s.repos.named(t.Context(), name); err != nil || at.Root != root {
			t.Errorf("%s is %v: %v", name, at, err)
		}
	}
	// A list that was made wrong: the name stands before the id of another.
	p.s.repos.known = []repo{{"shop-02", all[0].Workspace}, {"x", all[1].Workspace}}
	if at, err := p.s.repos.named(t.Context(), "shop-02"); err != nil || at.Root != "/b/shop" {
		t.Errorf("a name hides an id: %v %v", at, err)
	}
}
