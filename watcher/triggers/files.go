package triggers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/watcher"
)

// Limits of a look at files.
const (
	maxLooked = 200_000 // names
	maxFiles  = 50_000  // files that match
	maxHints  = 64      // folders that are watched for hints
	// quiet is how long a file must not have been written: it may be half there
	quiet = time.Second
)

// files reports new and changed files.
func (t *Triggers) files(ctx context.Context, j job.Job, of *engine.Trigger, tell func(engine.Fired)) {
	watches := t.watch(of.Globs)
	defer t.unwatch(watches)
	look := fileLook{t: t, globs: of.Globs, known: map[string]sight{}}
	for {
		for _, w := range watches { // a watch goes with its folder
			w.Arm()
		}
		stirred := t.stir()
		soon, err := look.now(ctx, func(name, digest string) {
			tell(engine.Fired{Key: name + "@" + digest, Values: map[string]any{"file": name}})
		})
		if ctx.Err() != nil {
			return
		}
		t.NoteError(j.Key, err)
		pause := t.opt.Every()
		if soon {
			stirred, pause = nil, min(pause, quiet) // what is being written hints all the time
		}
		if !wait(ctx, stirred, pause) {
			return
		}
	}
}

// presentFiles returns the keys of the files that are there.
func (t *Triggers) presentFiles(ctx context.Context, of *engine.Trigger) (keys []string, err error) {
	look := fileLook{t: t, globs: of.Globs, known: map[string]sight{}, all: true}
	_, err = look.now(ctx, func(name, digest string) { keys = append(keys, name+"@"+digest) })
	return keys, err
}

// fileLook looks at the files that globs name.
type fileLook struct {
	t     *Triggers
	globs []string
	known map[string]sight // by path
	all   bool             // also what is being written
}

// sight is a file as it was seen. since is by this machine's clock: the file's own time may be
// of a file server, whose clock is off.
type sight struct {
	stamp    string
	since    time.Time
	reported bool
}

// now reports the files that are new or have changed since the last look. soon: one of them was
// written just now, and is left for the next look.
func (l *fileLook) now(ctx context.Context, report func(name, digest string)) (soon bool, err error) {
	names, err := l.find(ctx)
	if err != nil {
		return false, err
	}
	there, at := map[string]bool{}, l.t.opt.Now()
	for _, name := range names {
		there[name] = true
		file := filepath.Join(l.t.opt.Root, filepath.FromSlash(name))
		info, err := os.Lstat(file)
		if err != nil || !info.Mode().IsRegular() {
			continue // removed in the meantime
		}
		stamp := fmt.Sprintf("%d %d", info.Size(), info.ModTime().UnixNano())
		was := l.known[name]
		if was.stamp != stamp {
			was = sight{stamp: stamp, since: at}
			l.known[name] = was
		}
		if was.reported {
			continue
		}
		if !l.all && at.Sub(was.since) < quiet {
			soon = true
			continue
		}
		digest, err := digestOf(ctx, file)
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		if err != nil {
			l.t.Logf("trigger files: %s: %v", name, err)
			continue
		}
		was.reported = true
		l.known[name] = was
		report(name, digest)
	}
	maps.DeleteFunc(l.known, func(name string, _ sight) bool { return !there[name] })
	return soon, nil
}

func digestOf(ctx context.Context, file string) (string, error) {
	f, _, err := atomicfile.Open(filepath.Dir(file), filepath.Base(file))
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for buf := make([]byte, 1<<20); ; {
		n, err := f.Read(buf)
		h.Write(buf[:n])
		if errors.Is(err, io.EOF) {
			return hex.EncodeToString(h.Sum(nil)[:16]), nil
		}
		if err != nil || ctx.Err() != nil {
			return "", errors.Join(err, ctx.Err())
		}
	}
}

// find returns the regular files that match, sorted. It enters no .git, no .workflow and no links.
func (l *fileLook) find(ctx context.Context) ([]string, error) {
	looked, found := 0, map[string]bool{}
	for _, base := range bases(l.globs) {
		top := filepath.Join(l.t.opt.Root, filepath.FromSlash(base))
		err := filepath.WalkDir(top, func(p string, d fs.DirEntry, err error) error {
			if looked++; looked > maxLooked {
				return fmt.Errorf("more than %d files to look at: name a folder before the *", maxLooked)
			}
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return nil // what cannot be read counts as missing
			case d.IsDir() && (d.Name() == ".git" || p == filepath.Join(l.t.opt.Root, ".workflow")):
				return fs.SkipDir
			case !d.Type().IsRegular():
				return nil
			}
			rel, err := filepath.Rel(l.t.opt.Root, p)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(rel)
			if slices.ContainsFunc(l.globs, func(g string) bool { return l.t.opt.Matches(g, name) }) {
				found[name] = true
			}
			if len(found) > maxFiles {
				return fmt.Errorf("more than %d files match: narrow the globs", maxFiles)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// bases returns the folders before the first wildcard of each glob, none within another.
func bases(globs []string) (out []string) {
	all := []string{}
	for _, g := range globs {
		parts := strings.Split(path.Clean(g), "/")
		n := slices.IndexFunc(parts, func(p string) bool { return strings.ContainsAny(p, "*?[") })
		if n < 0 { // a file or a folder
			n = len(parts)
		}
		all = append(all, path.Join(".", path.Join(parts[:n]...)))
	}
	slices.Sort(all)
	for _, b := range slices.Compact(all) {
		if !slices.ContainsFunc(out, func(o string) bool { return o == "." || strings.HasPrefix(b, o+"/") }) {
			out = append(out, b)
		}
	}
	return out
}

// watch asks for hints about the folders of globs.
func (t *Triggers) watch(globs []string) (watches []*watcher.FileWatch) {
	var dirs []string
	for _, b := range bases(globs) {
		dir := filepath.Join(t.opt.Root, filepath.FromSlash(b))
		if info, err := os.Lstat(dir); err != nil || !info.IsDir() {
			dir = filepath.Dir(dir)
		}
		if len(dirs) < maxHints && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		w := t.opt.Watcher.WatchFile(filepath.Join(dir, watcher.AnyFile))
		watches = append(watches, w)
		t.follow(w.Key(), 1)
	}
	return watches
}

func (t *Triggers) unwatch(watches []*watcher.FileWatch) {
	for _, w := range watches {
		t.follow(w.Key(), -1)
		w.Close()
	}
}

// follow counts who waits for hints of a name.
func (t *Triggers) follow(key string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watched[key] += n; t.watched[key] == 0 {
		delete(t.watched, key)
	}
}
