package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// slot is mutant.Slot; the package itself is of Linux only.
const slot = 4

// How a test came out.
const (
	found      = "fails by a flip"
	cannotFail = "cannot fail"
	nothing    = "evaluates nothing of the module"
	slow       = "too slow"
	skipped    = "skipped"
	red        = "red without a flip"
)

// unit is a test, a subtest that holds a row, or a script.
type unit struct {
	name  string
	rows  []string
	seen  []int // conditions that it evaluates
	took  time.Duration
	end   string
	tries int
	by    int // the condition whose flip made it fail
}

// suite is a package's tests in one binary.
type suite struct {
	options
	pkg
	conds []condition
	dir   string
	units []*unit
	count []int // tests that evaluate each condition
}

// build makes the test binary once for each place where tests run at a time, and the program beside it that tests of a
// command drive.
func (s *suite) build(overlay string) error {
	first := filepath.Join(s.dir, "0", "bin")
	if err := os.MkdirAll(first, 0o755); err != nil {
		return err
	}
	lines := [][]string{{"test", "-c", "-overlay", overlay, "-o", filepath.Join(first, "tests"), s.ImportPath}}
	if s.Name == "main" {
		lines = append(lines, []string{"build", "-overlay", overlay, "-o", filepath.Join(first, filepath.Base(s.Dir)), s.ImportPath})
	}
	for _, args := range lines {
		if out, err := exec.Command("go", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
	}
	for w := range s.width {
		place := filepath.Join(s.dir, fmt.Sprint(w))
		if err := os.MkdirAll(filepath.Join(place, "tmp"), 0o777); err != nil {
			return err
		}
		if w == 0 {
			continue
		}
		if err := os.CopyFS(filepath.Join(place, "bin"), os.DirFS(first)); err != nil {
			return err
		}
	}
	return nil
}

// walls is what a mutant runs behind: all but its /tmp, its own folder and Go's cache is read-only. It is not bubblewrap,
// whose /proc lets no sandbox of the product's be made inside.
const walls = `set -e
tmp=$1 bin=$2 cache=$3 dir=$4; shift 4
places=$(awk '$2 !~ "^/(dev|proc|sys)(/|$)" { print $2 }' /proc/self/mounts)
mount --bind "$cache" "$cache"
mount --bind "$bin" "$bin"
mount --bind "$tmp" "$tmp"
mkdir -p "$tmp/${bin#/tmp}"
mount --bind "$bin" "$tmp/${bin#/tmp}"
for place in $places; do mount -o remount,ro,bind "$place" || [ "$place" != / ]; done
mount --rbind "$tmp" /tmp
ulimit -v 16000000; ulimit -c 0
cd "$dir"
"$@"; exit $?`

// apart are the arguments of unshare(1): files and processes of its own, and for who is not root a user.
func apart() []string {
	args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Getuid() != 0 {
		args = append(args, "--map-root-user")
	}
	return args
}

// exec runs the binary at place w, with condition n flipped (-1: none) and a note of what is evaluated where wanted.
func (s *suite) exec(w, n int, limit time.Duration, note bool, args ...string) (out []byte, seen []int, err error) {
	place := filepath.Join(s.dir, fmt.Sprint(w))
	bin, tmp, marks := filepath.Join(place, "bin"), filepath.Join(place, "tmp"), filepath.Join(place, "bin", "SEEN")
	err = errors.Join(os.WriteFile(filepath.Join(bin, "MUTANT"), fmt.Append(nil, n), 0o644), os.RemoveAll(marks), os.RemoveAll(tmp), os.MkdirAll(tmp, 0o777))
	if note {
		err = errors.Join(err, os.WriteFile(marks, make([]byte, slot*len(s.conds)), 0o666))
	}
	if err != nil {
		return nil, nil, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", append(append(apart(), "sh", "-c", walls, "sh", tmp, bin, cache, s.Dir,
		filepath.Join(bin, "tests"), "-test.count=1", "-test.failfast"), args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR=/tmp", "SLUICE_TEST_BIN="+bin, "SLUICE_CONFORM=/tmp/conform")
	var buf bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &buf, &buf, time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if note {
		raw, rerr := os.ReadFile(marks)
		if rerr != nil {
			return nil, nil, rerr
		}
		for i := range s.conds {
			if raw[i*slot] != 0 {
				seen = append(seen, i)
			}
		}
	}
	return buf.Bytes(), seen, err
}

// only returns the arguments that run this one test.
func only(name string) []string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return []string{"-test.run", strings.Join(parts, "/")}
}

// each does f for every one of the items, at as many places as there are.
func each[T any](s *suite, items []T, f func(w int, item T)) {
	next := make(chan T)
	var all sync.WaitGroup
	for w := range s.width {
		all.Go(func() {
			for item := range next {
				f(w, item)
			}
		})
	}
	for _, item := range items {
		next <- item
	}
	close(next)
	all.Wait()
}

// judge tries every test and prints what was found.
func (s *suite) judge() error {
	began := time.Now()
	names := s.names
	_, before, err := s.exec(0, -1, s.limit, true, "-test.run", "^$") // what TestMain and variables evaluate
	if err != nil {
		return fmt.Errorf("it does not run: %w", err)
	}
	if names == nil {
		out, _, err := s.exec(0, -1, s.limit, false, "-test.list", "^(Test|Fuzz|Example)")
		if err != nil {
			return fmt.Errorf("its tests cannot be listed: %w: %s", err, out)
		}
		names = strings.Fields(string(out))
	}
	for _, name := range names {
		if s.run.MatchString(name) && !s.skip.MatchString(name) {
			s.units = append(s.units, &unit{name: name})
		}
	}
	var mu sync.Mutex
	var subtests []*unit
	each(s, s.units, func(w int, u *unit) {
		subs := s.first(w, u, before)
		mu.Lock()
		defer mu.Unlock()
		subtests = append(subtests, subs...)
	})
	each(s, subtests, func(w int, u *unit) { s.first(w, u, before) })
	s.units = append(s.units, subtests...)
	s.count = make([]int, len(s.conds))
	for _, u := range s.units {
		for _, n := range u.seen {
			s.count[n]++
		}
	}
	each(s, s.units, s.flip)
	s.print(time.Since(began))
	if s.survivors {
		s.survive()
	}
	return nil
}

// first runs the test as it is; it gives the subtests that hold rows.
func (s *suite) first(w int, u *unit, before []int) (subtests []*unit) {
	began := time.Now()
	out, seen, err := s.exec(w, -1, s.limit, true, append(only(u.name), "-test.v")...)
	u.took, u.seen = time.Since(began), slices.DeleteFunc(seen, func(n int) bool { _, ok := slices.BinarySearch(before, n); return ok })
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		u.end = slow
	case err != nil:
		u.end = red
		if s.vv {
			fmt.Printf("%s\n", out)
		}
	case bytes.Contains(out, []byte("--- SKIP: "+u.name+" ")):
		u.end = skipped
	case len(u.seen) == 0:
		u.end = nothing
	}
	files, _ := filepath.Glob(filepath.Join(s.dir, fmt.Sprint(w), "tmp/conform/*.jsonl"))
	more := map[string]*unit{}
	for _, file := range files {
		raw, _ := os.ReadFile(file)
		for line := range bytes.Lines(raw) {
			var r struct{ Doc, Rule, Test, Part, Result string }
			if json.Unmarshal(line, &r) != nil || r.Result != "passed" {
				continue
			}
			name := r.Test
			if r.Part != "" {
				name += "/" + r.Part
			}
			switch row := r.Doc + " " + r.Rule; {
			case name == u.name:
				u.rows = append(u.rows, row)
			case r.Part == "" && strings.HasPrefix(name, u.name+"/") && more[name] == nil:
				more[name] = &unit{name: name}
				subtests = append(subtests, more[name])
			}
		}
	}
	return subtests
}

// flip flips what the test evaluates, one after another, until it fails.
func (s *suite) flip(w int, u *unit) {
	if u.end != "" {
		return
	}
	order := slices.Clone(u.seen)
	other := map[bool]int{true: 1} // the package's own come first
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(s.count[a]-s.count[b], other[s.conds[a].pkg != s.ImportPath]-other[s.conds[b].pkg != s.ImportPath])
	})
	u.end = cannotFail
	for _, n := range order[:min(len(order), s.tries)] {
		u.tries++
		if _, _, err := s.exec(w, n, max(s.limit, 3*u.took), false, only(u.name)...); err != nil {
			u.end, u.by = found, n
			break
		}
	}
	if s.vv && u.end == found {
		fmt.Printf("  %s: flip %d of %d, %s\n", u.name, u.tries, len(u.seen), s.conds[u.by].pos)
	}
}

func (s *suite) print(took time.Duration) {
	ends, own, seen := map[string]int{}, 0, 0
	for _, u := range s.units {
		ends[u.end]++
	}
	for n, c := range s.conds {
		if c.pkg == s.ImportPath {
			own++
			if s.count[n] > 0 {
				seen++
			}
		}
	}
	fmt.Printf("\n%s: %d tests; %d conditions, %d evaluated; %.0f s\n", s.ImportPath, len(s.units), own, seen, took.Seconds())
	for _, end := range []string{found, cannotFail, nothing, slow, skipped, red} {
		if ends[end] == 0 {
			continue
		}
		fmt.Printf("  %d: %s\n", ends[end], end)
		for _, u := range s.units {
			if u.end == end && end != found {
				fmt.Printf("    %s (%d of %d conditions flipped, %.1f s) %s\n", u.name, u.tries, len(u.seen), u.took.Seconds(), strings.Join(u.rows, "; "))
			}
		}
	}
}

// survive lists the package's own conditions whose flip none of its tests notices.
func (s *suite) survive() {
	var mine []int
	for n, c := range s.conds {
		if c.pkg == s.ImportPath {
			mine = append(mine, n)
		}
	}
	kept := make([]string, len(s.conds))
	each(s, mine, func(w, n int) {
		var tests []string
		took := time.Duration(0)
		for _, u := range s.units {
			if _, ok := slices.BinarySearch(u.seen, n); ok && (u.end == found || u.end == cannotFail) && !strings.Contains(u.name, "/") {
				tests, took = append(tests, regexp.QuoteMeta(u.name)), took+u.took
			}
		}
		if len(tests) == 0 {
			kept[n] = "evaluated by no test"
		} else if _, _, err := s.exec(w, n, max(s.limit, 3*took), false, "-test.run", "^("+strings.Join(tests, "|")+")$"); err == nil {
			kept[n] = fmt.Sprintf("evaluated by %d tests, held by none", len(tests))
		}
	})
	for n, why := range kept {
		if why != "" {
			fmt.Printf("  %s: %s\n", s.conds[n].pos, why)
		}
	}
}
