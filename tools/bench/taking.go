//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sluice/engine"
	"sluice/gates"
	"sluice/internal/git"
	"sluice/internal/tree"
)

// aimTaken is how much longer the taking may last than git by hand.
const aimTaken = 1.1

// takingWork measures how long the work of an attempt takes to take, 10 files changed, beside git by hand, in turns.
func takingWork(ctx context.Context, b *bench) ([]figure, error) {
	var out []figure
	for _, size := range []int{2_000, 50_000, 500_000} {
		figures, err := takingOf(ctx, b, b.count(size, 200))
		if err != nil {
			return nil, err
		}
		if out = append(out, figures...); b.short {
			break
		}
	}
	return out, nil
}

// checkout is a repo with many files, and what takes its work.
type checkout struct {
	dir   string
	size  int
	turn  int
	work  tree.Folder
	order tree.Order
	was   tree.Before
}

func takingOf(ctx context.Context, b *bench, size int) (out []figure, err error) {
	root := filepath.Join(b.work, fmt.Sprint("row16-", size))
	c := &checkout{dir: filepath.Join(root, filepath.FromSlash(engine.WorkspaceDir), "w-1"), size: size}
	defer os.RemoveAll(root)
	if err := c.fill(ctx); err != nil {
		return nil, err
	}
	repo, err := git.OpenWith(ctx, c.dir, git.Options{Scratch: c.dir + "-scratch"})
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(c.dir + "-scratch")
	defer repo.Close()
	head, err := repo.Head(ctx, c.dir)
	if err != nil {
		return nil, err
	}
	law := gates.LawOf(&engine.Spec{Protect: []string{"test/**"}}, nil, nil, nil,
		gates.Bases{Root: root, Top: c.dir, Dir: c.dir})
	c.work = tree.Folder{Repo: repo, Top: c.dir, Law: law.MayDecide}
	c.order = tree.Order{Run: "bench-1", Step: "A", N: 1, Base: head}
	began := time.Now()
	if c.was, err = c.work.Find(ctx, c.order); err != nil {
		return nil, err
	}
	cold := time.Since(began)
	c.order.Found = c.was.Found
	byHand, err := c.hand(ctx, filepath.Join(c.dir+"-scratch", "hand"), "read-tree HEAD")
	if err != nil {
		return nil, err
	}
	out = append(out, c.figure("the first look at it", samples{cold}, samples{byHand}, 0))
	var took, hand samples
	for range b.count(9, 1) {
		d, err := c.take(ctx)
		if err != nil {
			return nil, err
		}
		h, err := c.hand(ctx, "", "")
		if err != nil {
			return nil, err
		}
		took, hand = append(took, d), append(hand, h)
	}
	return append(out, c.figure("10 changed files taken", took, hand, aimTaken)), nil
}

// figure sets two times side by side; aim 0 = none.
func (c *checkout) figure(what string, got, hand samples, aim float64) figure {
	f := figure{what: fmt.Sprintf("%d files: %s", c.size, what), got: ms(got.p50()), beside: ms(hand.p50()) + " git add and write-tree by hand", ratio: over(got.p50(), hand.p50())}
	if aim > 0 {
		f.aim, f.met = fmt.Sprintf("<= %.1fx", aim), holds(f.ratio <= aim)
	}
	return f
}

// fill makes the repo.
func (c *checkout) fill(ctx context.Context) error {
	const inFolder = 100
	for i := range c.size {
		dir := filepath.Join(c.dir, fmt.Sprint("d", i/inFolder))
		if i%inFolder == 0 {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i%inFolder)), fmt.Appendf(nil, "file %d\n", i), 0o644); err != nil {
			return err
		}
	}
	for _, args := range []string{"init -q -b main", "add -A", "-c user.name=b -c user.email=b@localhost -c commit.gpgsign=false commit -q -m first"} {
		if _, err := command(ctx, c.dir, "git", strings.Fields(args)...); err != nil {
			return err
		}
	}
	return nil
}

// change writes ten files anew.
func (c *checkout) change() error {
	c.turn++
	for i := range 10 {
		file := filepath.Join(c.dir, fmt.Sprint("d", i*(c.size/100)/10), "f1")
		if err := os.WriteFile(file, fmt.Appendf(nil, "turn %d\n", c.turn), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// take changes files and takes the work; the next one goes on from there, as an attempt does.
func (c *checkout) take(ctx context.Context) (time.Duration, error) {
	if err := c.change(); err != nil {
		return 0, err
	}
	began := time.Now()
	got, err := c.work.Take(ctx, c.order, c.order.Base, c.was)
	took := time.Since(began)
	c.order.Base, c.order.Found, c.order.N = got.Commit, got.Commit, c.order.N+1
	return took, err
}

// hand changes files and has git do the like; "" = with the repo's own index.
func (c *checkout) hand(ctx context.Context, index, first string) (time.Duration, error) {
	if err := c.change(); err != nil {
		return 0, err
	}
	script := "git add -A && git write-tree"
	if index != "" {
		script = "export GIT_INDEX_FILE='" + index + "'; git " + first + " && " + script
	}
	began := time.Now()
	_, err := command(ctx, c.dir, "sh", "-c", script)
	return time.Since(began), err
}
