package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/ids"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

// repo is a repo as the page names it: by its folder, with a suffix where that is also another repo's
// name or id.
type repo struct {
	Name string
	*workspace.Workspace
}

// knownFor is how long the list of repos is cached.
const knownFor = 2 * time.Second

// lookIn limits the search for repos.
const lookIn = 10 * time.Second

// repos are all known repos.
type repos struct {
	con *console.Console

	mu    sync.Mutex
	read  time.Time // when the list was last found to be right
	made  time.Time
	marks string // what the list was made from; "" = that cannot be read
	known []repo
	specs map[string]*engine.Spec // by root and digest
	logs  map[string]*runLog      // by root and run
}

func newRepos(con *console.Console) *repos {
	return &repos{con: con, specs: map[string]*engine.Spec{}, logs: map[string]*runLog{}}
}

// all returns the known repos, by name.
func (p *repos) all(ctx context.Context) ([]repo, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.con.Now()
	if p.known != nil && (now.Sub(p.read) < knownFor || p.asBefore(now)) {
		return p.known, nil
	}
	p.marks, _ = workspace.Marks(p.con)
	// A repo that cannot be read is left out, so a browser that disconnects must not end the search.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookIn)
	defer cancel()
	places, err := workspace.All(ctx, p.con, "/") // which is in no repo
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	known := namedRepos(places)
	slices.SortFunc(known, func(a, b repo) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Root, b.Root)) })
	p.known, p.read, p.made = known, now, now
	return known, nil
}

// namedRepos gives each repo a name that is no other's name or id: that of its folder if it can.
func namedRepos(places []*workspace.Workspace) []repo {
	count, owner := map[string]int{}, map[string]string{}
	for _, w := range places {
		count[filepath.Base(w.Root)]++
		owner[w.ID] = w.Root
	}
	known := make([]repo, 0, len(places))
	for _, w := range places {
		name := filepath.Base(w.Root)
		if root, taken := owner[name]; count[name] > 1 || taken && root != w.Root {
			sum := sha256.Sum256([]byte(w.Root))
			name += "~" + hex.EncodeToString(sum[:3])
		}
		known = append(known, repo{name, w})
	}
	return known
}

// listFor is how long a list of repos counts whose marks stay the same: a repo may have moved.
const listFor = time.Minute

// asBefore reports whether the list is still right, and notes that it is.
func (p *repos) asBefore(now time.Time) bool {
	if p.marks == "" || now.Sub(p.made) >= listFor {
		return false
	}
	gone := func(r repo) bool { return !workspace.IsDir(r.Root) }
	if marks, _ := workspace.Marks(p.con); marks != p.marks || slices.ContainsFunc(p.known, gone) {
		return false
	}
	p.read = now
	return true
}

// named returns the repo of a request's path: the one with that id, which notices use, or else with that
// name.
func (p *repos) named(ctx context.Context, name string) (repo, error) {
	known, err := p.all(ctx)
	if err != nil {
		return repo{}, err
	}
	var names []string
	for _, r := range known {
		if r.ID == name {
			return r, nil
		}
		names = append(names, r.Name)
	}
	if i := slices.Index(names, name); i >= 0 {
		return known[i], nil
	}
	return repo{}, errNotFound{fmt.Sprintf("no repo %q is known here%s", text.Line(name), text.DidYouMean(name, names))}
}

// spec returns the workflow that a run follows.
func (p *repos) spec(ctx context.Context, at repo, v workspace.Viewer, r daemon.RunStatus) (*engine.Spec, error) {
	if spec := p.compiled(at, r.Digest); spec != nil {
		return spec, nil
	}
	spec, err := workspace.SpecOf(ctx, v, r)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.specs) >= specsMost {
		clear(p.specs)
	}
	p.specs[specKey(at, r.Digest)] = spec
	return spec, nil
}

// compiled returns a spec that is kept; nil = it is not.
func (p *repos) compiled(at repo, digest string) *engine.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.specs[specKey(at, digest)]
}

func specKey(at repo, digest string) string { return at.Root + "\x00" + digest }

// specsMost is how many specs are kept compiled.
const specsMost = 200

// look calls fn with the run that a request's path names.
func (s *Server) look(r *http.Request,
	fn func(at repo, v workspace.Viewer, served bool, run daemon.RunStatus) error) error {
	at, err := s.repos.named(r.Context(), r.PathValue("repo"))
	if err != nil {
		return err
	}
	id := r.PathValue("run")
	v, served, err := at.View(r.Context())
	if err != nil {
		return err
	}
	defer v.Close()
	run, err := v.Run(r.Context(), id)
	if err == nil && ids.Valid(id) && run.ID == id {
		return fn(at, v, served, run)
	}
	var refused *fault.Error
	if err != nil && !errors.As(err, &refused) {
		return err
	}
	if st, e := v.Status(r.Context(), id); err != nil && e == nil && len(st.Runs) > 0 {
		return err // it is known, and cannot be read
	}
	return errNotFound{fmt.Sprintf("no run %q in %s", text.Line(id), at.Name)}
}

// attemptURL is the page of an attempt of the run with this page.
func attemptURL(run, step string, n int) string { return fmt.Sprintf("%s/a/%s.%d", run, step, n) }

// runURL is the page of a run, without its trailing slash.
func runURL(repo, run string) string { return "/r/" + url.PathEscape(repo) + "/" + run }
