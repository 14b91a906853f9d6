package triggers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"sluice/internal/text"
)

// maxAnswer limits what gh may answer, in bytes.
const maxAnswer = 8 << 20

// GH asks for issues with the program gh, by its login. gh does not say who may write to the repo, so
// no author is trusted.
type GH struct {
	Address func(ctx context.Context) (string, error) // of the repo at the forge
	Environ []string
}

// Open returns the open issues: see Issues.
func (g GH) Open(ctx context.Context, labels []string, assignee string, most int) ([]Issue, error) {
	gh, err := exec.LookPath("gh")
	if err != nil {
		return nil, errors.New("gh is not installed: install it (https://cli.github.com) and log in: gh auth login")
	}
	address, err := g.Address(ctx)
	if err != nil {
		return nil, err
	}
	args := []string{"issue", "list", "--repo", address, "--state", "open", "--limit", strconv.Itoa(most), "--json",
		"number,title,body,url,author,labels"}
	for _, l := range labels {
		args = append(args, "--label="+l)
	}
	if assignee == "me" {
		assignee = "@me"
	}
	if assignee != "" {
		args = append(args, "--assignee="+assignee)
	}
	cmd := exec.CommandContext(ctx, gh, args...)
	out, bad := &atMost{left: maxAnswer}, &atMost{left: 4 << 10}
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = "/", out, bad, time.Second
	cmd.Env = append(slices.Clone(g.Environ), "GH_PROMPT_DISABLED=1", "NO_COLOR=1")
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("gh has not answered in time: %w", ctx.Err())
		}
		return nil, fmt.Errorf("gh could not list the issues: %w: %s (`gh auth status` shows who you are there)", err,
			text.Line(strings.TrimSpace(bad.kept.String())))
	}
	if out.left < 0 {
		return nil, fmt.Errorf("the issues take more than %d MiB: narrow the labels", maxAnswer>>20)
	}
	return issuesOf(out.kept.Bytes(), most)
}

// issuesOf reads what gh printed.
func issuesOf(raw []byte, most int) ([]Issue, error) {
	var list []struct {
		Number           int
		Title, Body, URL string
		Author           struct{ Login string }
		Labels           []struct{ Name string }
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("gh did not list issues: %w", err)
	}
	out := make([]Issue, 0, min(len(list), most))
	for _, i := range list {
		if i.Number <= 0 || len(out) == most {
			continue
		}
		issue := Issue{Number: i.Number, Title: i.Title, Body: i.Body, URL: i.URL, Author: i.Author.Login}
		for _, l := range i.Labels {
			issue.Labels = append(issue.Labels, l.Name)
		}
		out = append(out, issue)
	}
	return out, nil
}

// atMost keeps the first bytes of an output. left is negative if there were more.
type atMost struct {
	kept bytes.Buffer // not embedded: its ReadFrom would pass over Write
	left int
}

func (a *atMost) Write(b []byte) (int, error) {
	if n := min(len(b), max(a.left, 0)); n > 0 {
		a.kept.Write(b[:n])
	}
	a.left -= len(b)
	return len(b), nil
}
