package engine

import (
	"fmt"
	"slices"
	"strings"
)

// What a forge can judge by.
const (
	ForgeChecks  = "checks"  // all checks of the commit are green
	ForgeReviews = "reviews" // somebody has approved the commit, and nobody wants changes
)

// ForgePrefix begins an approver that is an account at the forge: forge:ann.
const ForgePrefix = "forge:"

const (
	byForge     = "forge"  // the ByKind of a verdict of the forge
	causeMerged = "merged" // the EndCause of a run whose pull request somebody merged
)

// leastTrust returns the lowest trust level that the approvers imply: "" if there are none.
func (v *Reviewer) leastTrust() string {
	switch {
	case len(v.Approvers) == 0:
		return ""
	case v.AtForge():
		return TrustForge
	}
	return TrustSigned
}

// AtForge reports whether a person may answer the gate by a comment on the pull request.
func (v *Reviewer) AtForge() bool {
	return slices.ContainsFunc(v.Approvers, func(a string) bool { return strings.HasPrefix(a, ForgePrefix) })
}

// judgeKind returns the ByKind of a round that the gate's reviewer decides.
func (g *Gate) judgeKind() string {
	if len(g.Reviewer.Forge) > 0 {
		return byForge
	}
	return "reviewer"
}

// AtForge reports whether the forge, or people at it, judge one of the workflow's gates.
func (s *Spec) AtForge() bool {
	return slices.ContainsFunc(s.Gates, func(g *Gate) bool { return len(g.Reviewer.Forge) > 0 || g.Reviewer.AtForge() })
}

// IssueOf returns the number of the issue that a run's vars name (issue: {number: 7}), or 0.
func IssueOf(vars map[string]any) int {
	issue, _ := vars["issue"].(map[string]any)
	switch n := issue["number"].(type) {
	case int:
		return max(n, 0)
	case int64:
		return int(max(n, 0))
	case float64:
		return int(max(n, 0))
	}
	return 0
}

// owedAtForge appends the following of the run's pull request, and of the issue that it was started
// for. The key names what is under way, so that whoever follows looks anew when that changes.
func owedAtForge(out []Effect, r *Run, w *Spec) []Effect {
	if r.Child != nil || r.Stubbed() || !w.graph.forge && IssueOf(r.Vars) == 0 {
		return out
	}
	var key strings.Builder
	for _, a := range w.inOrder(r.alive) {
		fmt.Fprintf(&key, " %s.%d", a.step, a.N)
		if q := r.roundOver(a); q != nil {
			fmt.Fprintf(&key, " %s#%d %s", q.gate, q.N, q.State)
		}
	}
	return append(out, Effect{Kind: DoForge, Key: r.ID + "/forge" + key.String(), Run: r.ID})
}

// pullEnded ends a run whose pull request somebody has merged or closed.
func (d *ending) pullEnded(ev PullEnded) {
	r := d.s.Runs[ev.Run]
	if r == nil || r.Phase != RunRunning {
		return // it is over, or was reported before
	}
	by := &Actor{Who: clip(ev.By, 200), Via: clip(ev.Pull, 200)}
	if !ev.Merged {
		d.end(r, RunEnded{Phase: RunAborted, By: by, Cause: CausePerson,
			Why: fmt.Sprintf("%s was closed by %s", by.Via, by.Who)})
		return
	}
	why := fmt.Sprintf("%s was merged by %s as %.12s", by.Via, by.Who, ev.Commit)
	var open []string
	for _, q := range r.open {
		open = append(open, q.gate)
	}
	if slices.Sort(open); len(open) > 0 {
		why += ", before " + strings.Join(open, ", ") + " had passed"
	}
	d.end(r, RunEnded{Phase: RunCompleted, By: by, Cause: causeMerged, Why: why})
}

// names returns who answers, by each name that an approver may have, and how the answer is theirs.
func (ev Answered) names() (names []string, how string) {
	switch {
	case ev.Signed != nil:
		return ev.Signed.Names, "signed by"
	case ev.By.Trust == TrustForge:
		return []string{ForgePrefix + ev.By.Who}, "of"
	}
	return []string{ev.By.Who}, "of"
}

// accountOf names the account at the forge whose own address a commit has, as in
// 123+ann@users.noreply.github.com; any other name stays.
func accountOf(name string) string {
	if login, _, ok := strings.Cut(name, "@users.noreply."); ok {
		return ForgePrefix + login[strings.IndexByte(login, '+')+1:]
	}
	return name
}
