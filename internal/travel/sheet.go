package travel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/daemon"
	"sluice/internal/atomicfile"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/strictjson"
)

// Limits of a sheet that is read.
const (
	sheetMost = 64 << 20 // bytes
	packsMost = 10_000
	filesMost = 100_000
)

// sheet is what is stored of a run and its child runs.
type sheet struct {
	Run    string   `json:"run"`
	Root   string   `json:"root"`    // of the repo, where the sheet was written
	State  string   `json:"state"`   // the state folder there
	Has    []string `json:"digests"` // of results, and IDs of moves of branches; the newest last
	Runs   []string `json:"runs"`    // with files here
	Packs  []pack   `json:"packs"`
	Places []place  `json:"places"`
	// Files are JSON files of the state folder, by their path in it.
	Files map[string]json.RawMessage `json:"files"`
}

// pack is a stored pack: what Commit has and the bases have not.
type pack struct {
	Object string   `json:"object"` // its digest
	Commit string   `json:"commit"`
	Refs   []string `json:"refs"` // where the commit is kept; the first is its own
	Bases  []string `json:"bases,omitempty"`
}

// place is a checkout in which the run worked.
type place struct {
	Top    string `json:"top"`              // its path there
	Branch string `json:"branch,omitempty"` // the full name of its branch; "" = detached, or no checkout
	Tip    string `json:"tip,omitempty"`    // the branch's commit
	Taken  string `json:"taken"`            // the work that was taken there last
	// Own: it is a worktree that sluice makes; else a person's checkout.
	Own bool `json:"own,omitempty"`
}

// at returns the place of a checkout.
func (s *sheet) at(top string) *place {
	for i := range s.Places {
		if s.Places[i].Top == top {
			return &s.Places[i]
		}
	}
	s.Places = append(s.Places, place{Top: top})
	return &s.Places[len(s.Places)-1]
}

// pack returns the pack of a commit, or nil.
func (s *sheet) pack(commit string) *pack {
	for i := range s.Packs {
		if s.Packs[i].Commit == commit {
			return &s.Packs[i]
		}
	}
	return nil
}

// has notes a result or a move as the newest.
func (s *sheet) has(id string) {
	s.Has = append(slices.DeleteFunc(s.Has, func(other string) bool { return other == id }), id)
}

// lacks returns a result or a move that the sheet does not have.
func (s *sheet) lacks(work daemon.Work) string {
	for _, id := range slices.Concat(work.Digests, work.Moved) {
		if !slices.Contains(s.Has, id) {
			return id
		}
	}
	return ""
}

// kept returns the sheet of a run that this machine stored or brought last, and its digest.
func (w *Work) kept(run string) (s sheet, digest string, err error) {
	var k struct {
		Digest string
		Sheet  sheet
	}
	err = layout.Load(w.keptFile(run), &k)
	if errors.Is(err, fs.ErrNotExist) {
		return sheet{Run: run}, "", nil
	}
	return k.Sheet, k.Digest, err
}

func (w *Work) keep(s sheet, digest string) error {
	if digest != "" { // "": it is not stored
		w.mu.Lock()
		w.listed[digest] = s.objects()
		w.mu.Unlock()
	}
	return layout.Save(w.keptFile(s.Run), map[string]any{"Digest": digest, "Sheet": s})
}

func (w *Work) keptFile(run string) string {
	return filepath.Join(w.opt.State, layout.AttemptsDir, layout.PathElement(run), "stored")
}

// replacedFile is the file that names, by their pid files, the launches whose work in the folder was
// replaced by that of another machine.
func (w *Work) replacedFile(run string) string {
	return filepath.Join(w.opt.State, layout.AttemptsDir, layout.PathElement(run), "replaced")
}

// replace notes that what the launches of a run have in the folder is about to be replaced.
func (w *Work) replace(s sheet) error {
	var over []string
	for _, run := range s.Runs {
		dir := filepath.Dir(w.opt.PIDFile(run + "/"))
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if name, _, ok := strings.Cut(e.Name(), ".pid"); ok {
				over = append(over, filepath.Join(dir, name+".pid"))
			}
		}
	}
	return layout.Save(w.replacedFile(s.Run), over)
}

// travels reports whether a file in a run's folder of the state folder is for other machines too: what
// an attempt began from and made, and how the folders were. The rest is about this machine.
func travels(name string) bool {
	switch filepath.Ext(name) {
	case ".begin", ".files", ".received":
		return true
	}
	return name == "folder" || strings.HasPrefix(name, "folder-")
}

// gather reads the run's files into the sheet.
func (w *Work) gather(s *sheet) error {
	s.Root, s.State, s.Files = w.opt.Root, w.opt.State, map[string]json.RawMessage{}
	add := func(dir, name string) error {
		data, _, err := atomicfile.OpenRegular(filepath.Join(w.opt.State, dir), name, sheetMost)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && json.Valid(data) { // a power cut may have left part of one
			s.Files[filepath.ToSlash(filepath.Join(dir, name))] = data
		}
		return err
	}
	for _, run := range s.Runs {
		dir := filepath.Join(layout.AttemptsDir, layout.PathElement(run))
		entries, err := os.ReadDir(filepath.Join(w.opt.State, dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, e := range entries {
			if travels(e.Name()) {
				if err := add(dir, e.Name()); err != nil {
					return err
				}
			}
		}
	}
	return add("workspaces", layout.PathElement(s.Run))
}

// parse reads a sheet of another machine, which is checked, and translates its files to the places of
// this one.
func (w *Work) parse(in io.Reader, run string) (s sheet, err error) {
	data, err := io.ReadAll(io.LimitReader(in, sheetMost+1))
	if err != nil {
		return s, err
	}
	if err = strictjson.Object(data, sheetMost); err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil {
		err = s.check(run)
	}
	if err != nil {
		return s, fmt.Errorf("the sheet of %s: %w", run, err)
	}
	files := map[string]json.RawMessage{}
	for name, data := range s.Files {
		var v any
		read := json.NewDecoder(bytes.NewReader(data))
		read.UseNumber()
		if err := read.Decode(&v); err != nil {
			return s, fmt.Errorf("the sheet of %s: %s: %w", run, name, err)
		}
		moved, err := json.Marshal(w.here(s, v))
		if err != nil {
			return s, err
		}
		files[w.nameHere(s, name)] = moved
	}
	for i, p := range s.Places {
		s.Places[i].Top = w.pathHere(s, p.Top)
	}
	s.Files, s.Root, s.State = files, w.opt.Root, w.opt.State
	return s, nil
}

func (s *sheet) check(run string) error {
	switch {
	case s.Run != run:
		return fmt.Errorf("it is of %.80q", s.Run)
	case len(s.Packs) > packsMost || len(s.Files) > filesMost:
		return fmt.Errorf("it has %d packs and %d files", len(s.Packs), len(s.Files))
	case !filepath.IsAbs(s.Root) || !filepath.IsAbs(s.State):
		return errors.New("it names no folders")
	}
	for _, p := range s.Places {
		branch := p.Branch == "" && p.Tip == "" || git.IsName(p.Tip) && strings.HasPrefix(p.Branch, git.BranchRefs)
		if !branch || !git.IsName(p.Taken) || p.Own && !layout.Inside(s.Root, p.Top) {
			return fmt.Errorf("its branch at %.80q is %.80q at %.80q", p.Top, p.Branch, p.Tip)
		}
	}
	for _, r := range s.Runs {
		if r != run && !strings.HasPrefix(r, run+".") {
			return fmt.Errorf("it has files of %.80q", r)
		}
	}
	for _, p := range s.Packs {
		for _, c := range append([]string{p.Commit}, p.Bases...) {
			if !git.IsName(c) {
				return fmt.Errorf("%.80q is no commit", c)
			}
		}
		if len(p.Refs) == 0 {
			return fmt.Errorf("%.12s is kept nowhere", p.Commit)
		}
		for _, ref := range p.Refs {
			if !slices.ContainsFunc(s.Runs, func(run string) bool { return isRefOf(run, ref) }) {
				return fmt.Errorf("%.80q is no ref of the run's", ref)
			}
		}
	}
	for name := range s.Files {
		dir, file := filepath.Split(filepath.FromSlash(name))
		in := func(run string) bool {
			return filepath.Clean(dir) == filepath.Join(layout.AttemptsDir, layout.PathElement(run))
		}
		known := slices.ContainsFunc(s.Runs, in) && travels(file) || name == "workspaces/"+layout.PathElement(run)
		if !known || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("it has the file %.80q", name)
		}
	}
	return nil
}

// isRefOf reports whether a ref of sluice's is about a run.
func isRefOf(run, ref string) bool {
	for _, kind := range []string{"found", "taken", "tip"} {
		if strings.HasPrefix(ref, git.Own(kind, run)+"/") {
			return true
		}
	}
	return ref == git.Own("base", run)
}

// here replaces the folders of the machine that wrote a sheet by those of this one, in every text.
func (w *Work) here(s sheet, v any) any {
	switch v := v.(type) {
	case string:
		return w.pathHere(s, v)
	case []any:
		for i := range v {
			v[i] = w.here(s, v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = w.here(s, v[k])
		}
	}
	return v
}

func (w *Work) pathHere(s sheet, path string) string {
	for _, p := range [][2]string{{s.State, w.opt.State}, {s.Root, w.opt.Root}} {
		if path == p[0] || strings.HasPrefix(path, p[0]+"/") {
			return p[1] + path[len(p[0]):]
		}
	}
	return path
}

// nameHere translates the name of a file that has the digest of a checkout's path in it.
func (w *Work) nameHere(s sheet, name string) string {
	dir, file := filepath.Split(name)
	for _, p := range s.Places {
		if file == "folder-"+layout.HexSum([]byte(p.Top))[:16] {
			return dir + "folder-" + layout.HexSum([]byte(w.pathHere(s, p.Top)))[:16]
		}
	}
	return name
}
