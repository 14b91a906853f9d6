package tree

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"sluice/internal/git"
	"sluice/internal/text"
)

// MaxPack limits the pack of one launch's commits, in bytes.
const MaxPack = 2 << 30

// Limits on a git that reads a private folder.
const (
	askTime  = 30 * time.Second
	packTime = 10 * time.Minute
	maxAsk   = 4 << 10
)

// Inside runs git in a sandbox without network that can only read a private folder, its GIT_DIR. An
// exit code other than 0 is a *git.CommandError; any other error is the machine's.
type Inside func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error

// Receive brings the commits of an ended launch into the repo: those reachable from its HEAD but
// not from its base. They come as one pack, which is checked as strictly as git can before the repo
// gets any of it, and are kept by p.Ref. tip is the last commit, or the base. An error is the
// machine's: the same call may succeed later.
func Receive(ctx context.Context, repo *git.Repo, p Private, inside Inside) (Received, error) {
	r, err := receive(ctx, repo, p, inside, MaxPack)
	if err == nil && (r.Refused != "" || r.Aside != "") {
		// A call of the system that failed in a git often reads as a fault of the commits. The attempt
		// is to blame only if it happens again.
		return receive(ctx, repo, p, inside, MaxPack)
	}
	return r, err
}

// Received is the result of Receive. If the commits are refused or set aside, Tip is the base, and
// nothing of them stays.
type Received struct {
	Tip     string `json:"tip"`
	Refused string `json:"refused,omitempty"` // why they cannot be taken: the attempt has failed
	Aside   string `json:"aside,omitempty"`   // why they are not the work's history: its files become one commit
}

func receive(ctx context.Context, repo *git.Repo, p Private, inside Inside, most int64) (Received, error) {
	none := Received{Tip: p.Base}
	if p.Unmoved() {
		return none, nil
	}
	no := func(why string, err error) (Received, error) {
		why, err = blame(why, err)
		if err == nil && p.Base != "" { // a damaged repo is not the work's fault
			if err = repo.Whole(ctx, p.Base); err != nil {
				why = ""
			}
		}
		return Received{Tip: p.Base, Refused: why}, err
	}
	tip, err := askTip(ctx, inside)
	if err != nil {
		r, err := no("its HEAD names no commit", err)
		r.Refused, r.Aside = "", r.Refused
		return r, err
	}
	if tip == p.Base {
		return none, nil
	}
	q, err := repo.Quarantine(ctx)
	if err != nil {
		return none, err
	}
	defer q.Close()
	if err := fill(ctx, q, p.Base, tip, inside, most); err != nil {
		r, err := no("git refuses its commits", err)
		if strings.Contains(r.Refused, "exceeds maximum allowed size") {
			r.Refused = fmt.Sprintf("its commits are more than %s: leave large files out of them, or in Git LFS", sized(most))
		}
		return r, err
	}
	if p.Base != "" {
		ok, err := q.Descends(ctx, tip, p.Base)
		if err != nil {
			return no("its history cannot be read", err)
		}
		if !ok {
			return Received{Tip: p.Base,
				Aside: fmt.Sprintf("its last commit %.12s is not built on %.12s, where it began", tip, p.Base)}, nil
		}
	}
	if err := q.Connected(ctx, tip, p.Base); err != nil {
		return no("objects of its commits are missing", err)
	}
	if moved, err := q.Submodule(ctx, p.Base, tip); err != nil || moved != "" {
		return no(fmt.Sprintf("it added or moved the submodule %q", text.Clip(moved, ShownPath)), err)
	}
	if err := q.Keep(ctx, p.Ref(), tip); err != nil {
		return none, err
	}
	return Received{Tip: tip}, nil
}

// sized formats a number of bytes.
func sized(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// askTip returns HEAD's commit.
func askTip(ctx context.Context, inside Inside) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	out := &bounded{most: maxAsk}
	err := inside(ctx, []string{"rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"}, nil, out)
	tip := strings.TrimSpace(out.kept.String())
	if err == nil && !git.IsName(tip) {
		err = &git.CommandError{Command: "rev-parse", Code: 0, Stderr: "it printed no object name"}
	}
	return tip, timely(ctx, err)
}

// fill writes the pack inside and reads it into the quarantine.
func fill(ctx context.Context, q *git.Quarantine, base, tip string, inside Inside, most int64) error {
	ctx, cancel := context.WithTimeout(ctx, packTime)
	defer cancel()
	ask := tip + "\n"
	if base != "" {
		ask += "^" + base + "\n"
	}
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := inside(ctx, append(git.PackArgs(), "--local"), strings.NewReader(ask), w)
		done <- errors.Join(err, w.CloseWithError(io.EOF)) // index-pack detects a truncated pack
	}()
	err := q.Take(ctx, r, most)
	_ = r.CloseWithError(io.ErrClosedPipe)
	return timely(ctx, worse(err, <-done))
}

// worse returns the more informative of a pack's read and write errors: the machine's, if there is
// one.
func worse(read, wrote error) error {
	_, ofGit := errors.AsType[*git.CommandError](wrote)
	machine := wrote != nil && !ofGit && !errors.Is(wrote, io.ErrClosedPipe)
	if read == nil || machine {
		return wrote
	}
	return read
}

// timely replaces the error of a git that ran out of time: the fault is in what it reads.
func timely(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &git.CommandError{Code: -1, Stderr: "it did not end in time"}
	}
	return err
}

// blame returns a reason if the work is at fault, and an error if the machine is.
func blame(why string, err error) (string, error) {
	cmd, ofGit := errors.AsType[*git.CommandError](err)
	switch {
	case err == nil:
		return why, nil
	case !ofGit, ofTheMachine(err):
		return "", err
	}
	if cmd.Stderr != "" {
		why += ": " + cmd.Stderr
	}
	return why, nil
}

// bounded keeps output, and fails beyond a limit. The buffer is not embedded: its ReadFrom, which
// io.Copy calls, has none.
type bounded struct {
	most int
	kept bytes.Buffer
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.kept.Len()+len(p) > b.most {
		return 0, git.ErrOutput
	}
	return b.kept.Write(p)
}
