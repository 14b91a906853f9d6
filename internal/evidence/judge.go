package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// found is a statement about a commit whose signature counts.
type found struct {
	*Statement
	about  *Subject
	signer approval.Signer
}

// no is an answer of the code with its cause.
func no(code int, format string, args ...any) Answer {
	return Answer{Code: code, Why: fmt.Sprintf(format, args...)}
}

// judge holds a commit to the policy by the statements about it. A note that cannot be read, or
// that was changed after it was signed, is never passed over for a better one beside it; a statement
// by a key that the policy does not list adds nothing and takes nothing away.
func (v *Verifier) judge(ctx context.Context, c git.Commit) (Answer, error) {
	all, bad := v.statements(c)
	if bad != nil {
		return *bad, nil
	}
	answers := make([]Answer, 0, len(all.about))
	var pass, along Answer // by statements about the run's work, and about what came along with it
	for _, f := range newestOf(all.about) {
		a, err := v.weigh(ctx, c, f)
		if err != nil {
			return Answer{}, err
		}
		a.Run, a.Signer, a.Key = f.Predicate.Run.ID, f.signer.Names[0], f.signer.Key
		if a.Code == CodePass {
			to := &pass
			if f.about.Annotations.How == HowCarried {
				to = &along
			}
			runs := append(to.runs, attested{f.Predicate.Journal.Repo, a.Run})
			if to.Run == "" {
				*to = a
			}
			to.runs, to.along = runs, to == &along
			continue
		}
		answers = append(answers, a)
	}
	switch {
	case pass.Run != "":
		return pass, nil
	case along.Run != "":
		return along, nil
	case len(answers) > 0:
		return slices.MaxFunc(answers, func(a, b Answer) int { return cmp.Compare(a.Code, b.Code) }), nil
	case len(all.unlisted) > 0:
		return no(CodeForged, "%s", all.unlisted[0]), nil
	case len(all.others) > 0:
		return no(CodeNone, "no evidence: its note is about commit %.12s, and counts for no other", all.others[0]), nil
	}
	return no(CodeNone, "no evidence: it has no note in refs/notes/%s", NotesName), nil
}

// gathered are the statements that may be about a commit.
type gathered struct {
	about    []found
	others   []string // commits that statements in its note are about
	unlisted []string // why those by unknown keys do not count
}

// statements opens all envelopes that may be about a commit. bad is the answer if one of them was
// tampered with.
func (v *Verifier) statements(c git.Commit) (out gathered, bad *Answer) {
	sources := slices.Concat(v.notes[c.SHA], v.trees[c.Tree], []noted{{envelopes: v.files}})
	own := len(v.notes[c.SHA])
	for i, n := range sources {
		if n.err != nil {
			return out, new(no(CodeForged, "its note cannot be read: %v", n.err))
		}
		for _, e := range n.envelopes {
			s, by, err := e.open(v.Policy.Signers)
			unknown, unlisted := errors.AsType[*approval.UnknownKey](err)
			switch {
			case unlisted:
				out.unlisted = append(out.unlisted,
					fmt.Sprintf("the statement is signed by key %s, which the policy does not list", text.Line(unknown.Key)))
				continue
			case err != nil && i >= own:
				continue // of another commit, or a file: whoever it is about answers for it
			case err != nil:
				what, _ := fault.Split(err)
				return out, new(no(CodeForged, "the statement in its note does not hold: %s", what))
			}
			sub := s.about(func(d Digest) bool { return d.Commit == c.SHA })
			if sub == nil && v.Policy.Match == MatchTree {
				sub = s.about(func(d Digest) bool { return d.Tree == c.Tree })
			}
			switch {
			case sub == nil && i < own:
				out.others = append(out.others, s.Subject[0].Digest.Commit)
			case sub == nil:
			case sub.Digest.Tree != c.Tree:
				return out, new(no(CodeForged, "the statement names tree %.12s for it, and its tree is %.12s",
					sub.Digest.Tree, c.Tree))
			default:
				out.about = append(out.about, found{s, sub, by})
			}
		}
	}
	return out, nil
}

// newestOf keeps the newest statement about each run.
func newestOf(all []found) []found {
	type run struct{ repo, id string }
	newest := map[run]found{}
	for _, f := range all {
		key := run{f.Predicate.Journal.Repo, f.Predicate.Run.ID}
		was, there := newest[key]
		if a, b := was.Statement, f.Statement; !there || cmp.Or(
			cmp.Compare(b.Predicate.Journal.Records, a.Predicate.Journal.Records),
			b.Predicate.Made.At.Compare(a.Predicate.Made.At)) > 0 {
			newest[key] = f
		}
	}
	return slices.SortedFunc(maps.Values(newest),
		func(a, b found) int { return strings.Compare(a.Predicate.Run.ID, b.Predicate.Run.ID) })
}

// weigh holds a statement to the policy.
func (v *Verifier) weigh(ctx context.Context, c git.Commit, f found) (Answer, error) {
	p, run := f.Predicate, f.Predicate.Run
	at := p.Journal.Repo + " " + fmt.Sprint(p.Journal.Records)
	if sum, there := v.journal[at]; there && sum != p.Journal.Sum {
		return no(CodeForged, "two statements name another record %d of the journal of %s, which was cut or rewritten "+
			"between them", p.Journal.Records, text.Line(p.Journal.Repo)), nil
	}
	v.journal[at] = p.Journal.Sum
	switch how := f.about.Annotations.How; {
	case how == HowWork && f.about.Digest.Tree != p.Work.Tree:
		return no(CodeForged, "the statement calls tree %.12s the work of %s, and that is tree %.12s", c.Tree, run.ID,
			p.Work.Tree), nil
	case !slices.Contains(v.Policy.Accept, how):
		return no(CodeUnsatisfied, "%s", howWords(how, run.ID)), nil
	case !run.Finished() && !v.Policy.Unfinished:
		return no(CodeUnsatisfied, "%s has not completed: it was %s when it was attested", run.ID,
			text.Line(run.Phase)), nil
	case len(v.Policy.Workflows) > 0 && !slices.Contains(v.Policy.Workflows, run.Workflow):
		return no(CodeUnsatisfied, "%s is a run of workflow %s, which the policy does not take", run.ID,
			text.Line(run.Workflow)), nil
	}
	if ok, err := v.listed(ctx, run); err != nil || !ok {
		return no(CodeUnsatisfied, "%s ran a spec (%.12s) that the policy does not list", run.ID,
			cmp.Or(run.File, run.Spec)), err
	}
	said := make([]string, 0, len(v.Policy.Gates))
	for _, rule := range v.Policy.Gates {
		words, bad, err := v.gate(ctx, f, rule)
		if err != nil || bad != nil {
			if bad == nil {
				bad = new(Answer)
			}
			return *bad, err
		}
		said = append(said, words)
	}
	return Answer{Why: run.ID + ": " + strings.Join(said, ", ")}, nil
}

// listed reports whether the policy takes the spec of a run.
func (v *Verifier) listed(ctx context.Context, run Run) (bool, error) {
	specs := v.Policy.Specs
	if len(specs) == 0 || slices.Contains(specs, run.File) || slices.Contains(specs, run.Spec) {
		return true, nil
	}
	if !slices.Contains(specs, SpecsOfBase) || run.File == "" {
		return false, nil
	}
	data, err := fileAt(ctx, v.Repo, v.Policy.Base, layout.SpecsDir+"/"+run.Workflow+".yaml")
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && layout.HexSum(data) == run.File, err
}

func howWords(how, run string) string {
	switch how {
	case HowMerged:
		return "the work of " + run + " was merged with what the branch had by then, which no gate judged (accept: merged)"
	case HowCarried:
		return "it came along with the work of " + run + ", and no gate judged it by itself (accept: carried)"
	}
	return "it has the work of " + run + " in a way that is not known: " + text.Line(how)
}

// gate returns how a gate passed the work, or why it does not meet the rule.
func (v *Verifier) gate(ctx context.Context, f found, rule Rule) (words string, bad *Answer, err error) {
	fail := func(code int, format string, args ...any) (string, *Answer, error) {
		return "", new(no(code, "gate "+text.Line(rule.Gate)+": "+format, args...)), nil
	}
	var first *Answer
	seen, passed := 0, 0
	for _, g := range f.Predicate.Gates {
		if g.ID != rule.Gate || len(g.Rounds) == 0 {
			continue
		}
		seen++
		q := g.Rounds[len(g.Rounds)-1]
		code, why := v.round(f, q, rule)
		if code == CodePass && q.Trust == engine.TrustSigned {
			if code, why, err = v.proven(ctx, f, g, q, rule); err != nil {
				return "", nil, err
			}
		}
		if code != CodePass {
			if _, a, _ := fail(code, "%s", why); first == nil {
				first = a
			}
			continue
		}
		passed++
		words = fmt.Sprintf("%s passed by %s", text.Line(g.ID), byWhom(q))
	}
	switch {
	case seen == 0:
		return fail(CodeUnsatisfied, "%s has no round of it", f.Predicate.Run.ID)
	case passed == 0, rule.Judged == JudgedRun && passed < seen:
		return "", first, nil
	}
	return words, nil, nil
}

func byWhom(q Round) string {
	if q.Who == "" {
		return text.Line(q.By)
	}
	return text.Line(q.Who) + " (" + text.Line(q.Trust) + ")"
}

// round returns why the newest round of a gate does not meet the rule, but for the proof of a signed
// answer.
func (v *Verifier) round(f found, q Round, rule Rule) (code int, why string) {
	work := f.Predicate.Work
	switch {
	case q.At.IsZero():
		return CodeUnsatisfied, fmt.Sprintf("its newest round, %d, is not decided", q.N)
	case q.State != engine.Approved:
		return CodeUnsatisfied, fmt.Sprintf("its newest round, %d, is %s", q.N, text.Line(q.State))
	case q.By == "when":
		if !rule.Skipped {
			return CodeUnsatisfied, "it was skipped by its `when` (skipped: true takes that)"
		}
		return CodePass, ""
	case q.By == "exhausted" || q.LetThrough > 0:
		return CodeUnsatisfied, "it let the work through without a pass, because its retries were used up"
	case rule.Judged == JudgedCommit && q.Judged.Tree != work.Tree:
		if !q.Judged.whole() {
			return CodeUnsatisfied, fmt.Sprintf("round %d judged no commit that is known", q.N)
		}
		return CodeUnsatisfied, fmt.Sprintf("round %d passed commit %.12s, and the work is %.12s, which it did not judge",
			q.N, q.Judged.Commit, work.Commit)
	case rule.Trust != "" && !engine.Trusted(trustOf(q, f.Predicate.Run), rule.Trust):
		return CodeUnsatisfied, fmt.Sprintf("its answer has trust %s, and the policy requires %s",
			trustOf(q, f.Predicate.Run), rule.Trust)
	case len(rule.By) > 0 && q.Trust != engine.TrustSigned &&
		!slices.ContainsFunc(rule.By, func(n string) bool { return strings.EqualFold(n, q.Who) }):
		return CodeUnsatisfied, fmt.Sprintf("%s passed it, and the policy requires %s", byWhom(q),
			strings.Join(rule.By, " or "))
	}
	return CodePass, ""
}

// trustOf is the trust level of a round: of who decided, else of the run, whose reviewer is held as
// its agents are.
func trustOf(q Round, run Run) string {
	switch {
	case q.Who != "" || q.By == engine.Human:
		return cmp.Or(q.Trust, engine.TrustFile)
	case run.Held:
		return engine.TrustSandbox
	}
	return engine.TrustFile
}

// proven returns why a signed answer does not hold, by the approvers of the policy. A rule that asks
// for no signature and no person takes it as the statement has it.
func (v *Verifier) proven(ctx context.Context, f found, g Gate, q Round, rule Rule) (code int, why string, err error) {
	if rule.Trust != engine.TrustSigned && len(rule.By) == 0 {
		return CodePass, "", nil
	}
	said, by, err := v.Policy.Approvers.Verify([]byte(q.Proof), approval.GateNamespace)
	if err != nil {
		what, _ := fault.Split(err)
		return CodeForged, "its signed answer does not hold: " + what, nil
	}
	a, err := approval.ParseApproval(said)
	p := f.Predicate
	here := a.Repo == p.Journal.Repo || a.Repo == p.Journal.ID
	switch {
	case err != nil:
		return CodeForged, "its signed answer cannot be read: " + err.Error(), nil
	case a.Repo == "" || !here || a.Run != cmp.Or(g.Run, p.Run.ID) || a.Gate != g.ID || a.Round != q.N ||
		a.Decision != engine.OutcomePass || a.Reviewed != q.Reviewed || tree.CommitIn(a.Reviewed) != q.Judged.Commit:
		return CodeForged, "what was signed is another answer than the statement has", nil
	case len(rule.By) > 0 && !by.Named(rule.By):
		return CodeUnsatisfied, fmt.Sprintf("%s passed it, and the policy requires %s", by.Names[0],
			strings.Join(rule.By, " or ")), nil
	case !q.Judged.whole():
		return CodePass, "", nil
	}
	// Where the judged commit is here, its tree need not be believed.
	have, _, err := v.Repo.NewCommits(ctx, map[string]string{"": q.Judged.Commit}, nil, 1)
	if err != nil {
		return 0, "", err
	}
	if len(have) == 1 && have[0].SHA == q.Judged.Commit && have[0].Tree != q.Judged.Tree {
		return CodeForged, fmt.Sprintf("the statement names another tree for %.12s than it has", q.Judged.Commit), nil
	}
	return CodePass, "", nil
}
