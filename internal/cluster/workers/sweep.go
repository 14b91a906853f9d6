package workers

import (
	"os"
	"slices"
	"strings"

	"sluice/internal/layout"
)

// sweep forgets the launches of a folder of runs, and what they have left, once all of them have been
// over for keptFor: a later one may continue a conversation of an earlier one. Only one call runs at a time.
func (p *Post) sweep() {
	tried := map[string]bool{}
	for folder, all := p.over(tried); all != nil; folder, all = p.over(tried) {
		tried[folder] = true
		p.forget(folder, all)
	}
}

// over returns a folder of runs that can be removed, with its launches: none is accepted there until the next
// call. No launches: there is no more such folder.
func (p *Post) over(tried map[string]bool) (folder string, all []*made) {
	p.mu.Lock()
	defer p.mu.Unlock()
	of, stays := map[string][]*made{}, map[string]bool{}
	for _, m := range p.keys {
		folder := folderOf(m.Sent.Dir)
		of[folder] = append(of[folder], m)
		if !m.Over || p.opt.Now().Sub(m.Since) <= keptFor {
			stays[folder] = true
		}
	}
	p.swept = ""
	for folder, all := range of {
		if !stays[folder] && !tried[folder] {
			p.swept = folder
			return folder, all
		}
	}
	return "", nil
}

// forget removes what launches have left in a folder of runs, and then their keys. It does not hold the lock
// while it removes, which can take long.
func (p *Post) forget(folder string, all []*made) {
	var runs []string
	for _, m := range all {
		if !slices.Contains(runs, m.Sent.Run) {
			runs = append(runs, m.Sent.Run)
		}
	}
	if folder != "" {
		if err := p.opt.Maker.Forget(folder, runs); err != nil {
			p.opt.Logf("what the launches of %s have left: %v", strings.Join(runs, ", "), err)
			return // it is tried again
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range all {
		_ = os.Remove(p.path(keysDir, layout.PathElement(m.Sent.Key))) // it is only kept for longer then
		delete(p.keys, m.Sent.Key)
	}
}

// folderOf returns the folder in which the run of a launch, and the runs of its tasks, have theirs. It
// is "" where the launch does not say: earlier releases kept only the keys of those that are over.
func folderOf(dir string) string {
	if !isDir(dir) {
		return ""
	}
	rest, _ := strings.CutPrefix(dir, layout.RunsDir+"/")
	top, _, _ := strings.Cut(rest, "/")
	return layout.RunsDir + "/" + top
}
