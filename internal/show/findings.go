package show

import (
	"context"
	"fmt"
	"strings"

	"sluice/engine"
	"sluice/internal/console"
	"sluice/internal/findings"
	"sluice/internal/git"
	"sluice/internal/review"
	"sluice/internal/workspace"
)

// Since is a finding of the round before, and what became of its place.
type Since struct {
	findings.Finding
	Comment bool   `json:"comment,omitempty"` // a person's
	State   string `json:"state,omitempty"`   // changed since, unchanged; "" = it names no file
}

// since adds what became of the places of the last round's findings, if its work was kept.
func (sh *Shown) since(ctx context.Context, from *workspace.Workspace) {
	n := len(sh.Earlier)
	if n == 0 || sh.Taken == "" {
		return
	}
	q := sh.Earlier[n-1]
	all := found(q)
	if len(all) == 0 {
		return
	}
	repo, err := from.Open(ctx)
	if err != nil {
		return
	}
	defer repo.Close()
	was, _, err := repo.Kept(ctx, fmt.Sprintf("%s/%s.%d", sh.Run, q.Step, q.Attempt))
	if err != nil {
		return
	}
	patch, cut, err := repo.Between(ctx, was, sh.Taken, MaxPatch, git.Look{Bare: true})
	if err != nil || cut {
		return
	}
	lines := review.Lines(patch)
	for i := range all {
		all[i].State = review.Since(all[i].Finding, lines)
	}
	sh.Since = all
}

// found returns a person's comments and the findings of a reviewer.
func found(q engine.Round) (all []Since) {
	for _, f := range findings.List(q.Comments) {
		all = append(all, Since{Finding: f, Comment: true})
	}
	for _, f := range findings.List(q.Findings) {
		all = append(all, Since{Finding: f})
	}
	return all
}

func printFindings(con *console.Console, q engine.Round) { printSince(con, found(q)) }

func printSince(con *console.Console, all []Since) {
	for _, f := range all {
		label := "finding"
		if f.Comment {
			label = "comment"
		}
		words := []string{f.Severity, f.Place()}
		if f.State != "" {
			words = append(words, "("+f.State+")")
		}
		con.Text(label, strings.Join(strings.Fields(strings.Join(words, " ")), " ")+" "+f.Message)
	}
}
