package travel

import (
	"context"
	"slices"
	"strings"
	"time"

	"sluice/internal/cluster"
	"sluice/internal/git"
)

// keepFor is how long the work of a run that has ended, and was not landed, stays stored.
const keepFor = 30 * 24 * time.Hour

// sweep removes what is stored of runs that are over: landed, unknown, or ended long ago. What cannot
// be removed now is removed by a later call.
func (w *Work) sweep(ctx context.Context, live, known []string) {
	w.sweeping.Lock()
	defer w.sweeping.Unlock()
	why := ""
	if err := w.swept(ctx, live, known); err != nil && ctx.Err() == nil {
		why = err.Error()
	}
	w.opt.Notes.Note("removing stored work", why)
}

func (w *Work) swept(ctx context.Context, live, known []string) error {
	list, err := w.opt.Packs.Names(ctx, names)
	if err != nil {
		return err
	}
	over, err := w.over(ctx, list, live, known)
	if err != nil {
		return err
	}
	used, gone := map[string]bool{}, []cluster.Named{}
	objects, listed := map[string]bool{}, map[string][]string{}
	for _, n := range list { // of these, every object is one of a pack or a sheet
		run := runOf(n)
		its, err := w.objectsOf(ctx, run, n.Digest)
		if err != nil && !over[run] {
			return err // what it uses is not known
		}
		of := used
		if over[run] {
			gone, of = append(gone, n), objects
		}
		of[n.Digest] = true
		for _, object := range its {
			of[object] = true
		}
		if err == nil {
			listed[n.Digest] = its
		}
	}
	w.mu.Lock()
	w.listed = listed
	w.mu.Unlock()
	for _, run := range live { // what is listed may lack the newest
		s, digest, err := w.kept(run)
		if err != nil {
			return err
		}
		used[digest] = true
		for _, object := range s.objects() {
			used[object] = true
		}
	}
	for object := range objects {
		if !used[object] {
			gone = append(gone, cluster.Named{Name: object})
		}
	}
	for _, n := range gone { // the names first: none stands for what is gone
		if err := w.opt.Packs.Remove(ctx, n.Name); err != nil {
			return err
		}
	}
	return nil
}

// runOf returns the run of a name that nameOf has made.
func runOf(n cluster.Named) string {
	run, _, _ := strings.Cut(strings.TrimPrefix(n.Name, names), "/")
	return run
}

// over returns the runs whose stored work nothing needs.
func (w *Work) over(ctx context.Context, list []cluster.Named, live, known []string) (map[string]bool, error) {
	over := map[string]bool{}
	for _, n := range list {
		run := runOf(n)
		if over[run] || slices.Contains(live, run) {
			continue
		}
		over[run] = !slices.Contains(known, run) || time.Since(n.At) > keepFor
		if w.opt.Git != nil && !over[run] {
			tip, err := w.opt.Git.TipOf(ctx, git.Own("landed", run))
			if err != nil {
				return nil, err
			}
			over[run] = tip.SHA != ""
		}
	}
	return over, nil
}

// objectsOf returns the objects that a stored sheet names. A sheet is read once: its digest is its name.
func (w *Work) objectsOf(ctx context.Context, run, digest string) ([]string, error) {
	w.mu.Lock()
	list, ok := w.listed[digest]
	w.mu.Unlock()
	if ok {
		return list, nil
	}
	s, err := w.sheetOf(ctx, run, digest)
	return s.objects(), err
}

func (s sheet) objects() (list []string) {
	for _, p := range s.Packs {
		list = append(list, p.Object)
	}
	return list
}
