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

// MaxPack bounds the pack of one launch's commits, in bytes.
const MaxPack = 2 << 30

// Bounds of a git that reads a private folder.
const (
	askTime  = 30 * time.Second
	packTime = 10 * time.Minute
	maxAsk   = 4 << 10
)

// Inside runs git in a sandbox that has no network and can only read a private folder, which is its GIT_DIR. A git that
// ends with another code than 0 is a *git.CommandError; every other error is the machine's.
type Inside func(ctx context.Context, args []string, stdin io.Reader, stdout io.Writer) error

// Receive brings the commits of a launch that is over into the repo: all that its HEAD has and its base has not. They come
// as one pack, which is checked as strictly as git can before the repo has any of it, and are kept by p.Ref. tip is the
// last of them, the base where there is none. An error is the machine's: the same call may succeed later.
func Receive(ctx context.Context, repo *git.Repo, p Private, inside Inside) (Received, error) {
	return receive(ctx, repo, p, inside, MaxPack)
}

// Received is what came of a launch's commits. Where they are refused or left aside, Tip is the base, and nothing of them
// is left behind.
type Received struct {
	Tip     string `json:"tip"`
	Refused string `json:"refused,omitempty"` // why they cannot be taken: the attempt has failed
	Aside   string `json:"aside,omitempty"`   // why they are no history of the work: its files become one commit
}

func receive(ctx context.Context, repo *git.Repo, p Private, inside Inside, most int64) (Received, error) {
	none := Received{Tip: p.Base}
	if p.Unmoved() {
		return none, nil
	}
	no := func(why string, err error) (Received, error) {
		why, err = blame(why, err)
		if err == nil && p.Base != "" { // a repo that is damaged is not the work's fault
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
			return Received{Tip: p.Base, Aside: fmt.Sprintf("its last commit %.12s is not built on %.12s, where it began", tip, p.Base)}, nil
		}
	}
	if err := q.Connected(ctx, tip, p.Base); err != nil {
		return no("objects of its commits are missing", err)
	}
	if moved, err := q.Submodule(ctx, p.Base, tip); err != nil || moved != "" {
		return no(fmt.Sprintf("it added or moved the submodule %q", text.Clip(moved, shownPath)), err)
	}
	if err := q.Keep(ctx, p.Ref(), tip); err != nil {
		return none, err
	}
	return Received{Tip: tip}, nil
}

// sized says a number of bytes.
func sized(n int64) string {
	if n%(1<<30) == 0 {
		return fmt.Sprintf("%d GiB", n>>30)
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// askTip asks where HEAD is.
func askTip(ctx context.Context, inside Inside) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	out := &bounded{most: maxAsk}
	err := inside(ctx, []string{"rev-parse", "--verify", "--quiet", "--end-of-options", "HEAD^{commit}"}, nil, out)
	tip := strings.TrimSpace(out.String())
	if err == nil && !git.IsName(tip) {
		err = &git.CommandError{Command: "rev-parse", Code: 0, Stderr: "it printed no object name"}
	}
	return tip, timely(ctx, err)
}

// fill has the pack written inside and read into the quarantine.
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
		args := []string{"pack-objects", "--revs", "--stdout", "--thin", "--local", "--delta-base-offset", "--quiet", "--threads=1"}
		err := inside(ctx, args, strings.NewReader(ask), w)
		done <- errors.Join(err, w.CloseWithError(io.EOF)) // a pack that was cut short is for index-pack to find
	}()
	err := q.Take(ctx, r, most)
	_ = r.CloseWithError(io.ErrClosedPipe)
	return timely(ctx, worse(err, <-done))
}

// worse returns the error that tells more of a pack that was read and of the git that wrote it: the machine's, if one is.
func worse(read, wrote error) error {
	var cmd *git.CommandError
	machine := wrote != nil && !errors.As(wrote, &cmd) && !errors.Is(wrote, io.ErrClosedPipe)
	if read == nil || machine {
		return wrote
	}
	return read
}

// timely is the error of a git that was given all the time there is: what it reads is to blame.
func timely(ctx context.Context, err error) error {
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &git.CommandError{Code: -1, Stderr: "it did not end in time"}
	}
	return err
}

// blame returns what the work is to blame for, as words, from what the machine is, as an error.
func blame(why string, err error) (string, error) {
	var cmd *git.CommandError
	switch {
	case err == nil:
		return why, nil
	case !errors.As(err, &cmd), ofTheMachine(err):
		return "", err
	}
	if cmd.Stderr != "" {
		why += ": " + cmd.Stderr
	}
	return why, nil
}

// bounded keeps what is printed, and fails where that is too much.
type bounded struct {
	bytes.Buffer
	most int
}

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > b.most {
		return 0, git.ErrOutput
	}
	return b.Buffer.Write(p)
}
