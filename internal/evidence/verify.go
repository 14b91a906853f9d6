package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sluice/gates"
	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/text"
	"sluice/internal/tree"
)

// Codes of an answer, worst last. They are exit codes of `sluice verify`.
const (
	CodePass        = fault.ExitOK
	CodeNone        = fault.ExitNoEvidence  // a commit without evidence
	CodeUnsatisfied = fault.ExitUnsatisfied // evidence that is not what the policy requires
	CodeForged      = fault.ExitForged      // tampered with, or signed by a key that does not count
)

// maxCommits limits a range. A longer one is refused, not shortened.
const maxCommits = 10_000

// Answer says of a commit whether it went through the gates that the policy requires.
type Answer struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"` // first line of its message
	OK      bool   `json:"ok"`
	Code    int    `json:"code"`
	Why     string `json:"why"`              // one line, also of a pass
	Run     string `json:"run,omitempty"`    // of the statement that counts
	Signer  string `json:"signer,omitempty"` // of that statement
	Key     string `json:"key,omitempty"`    // the signer's

	runs  []attested // of a pass: by whose statements
	along bool       // it only came along with their work: see accompany
}

// attested names a run among those of all repos.
type attested struct{ repo, run string }

// Commits lists the commits that a person names, oldest first: one, or the range A..B. A clone
// without its whole history is refused: a part of a range could be missing in it.
func Commits(ctx context.Context, repo *git.Repo, what string) ([]git.Commit, error) {
	if cut, err := os.Stat(filepath.Join(repo.CommonDir(), "shallow")); err == nil && cut.Size() > 0 {
		return nil, fault.Misused("fetch all of it: git fetch --unshallow, or fetch-depth: 0 in actions/checkout",
			"the clone lacks a part of its history")
	}
	base, tip, is := strings.Cut(what, "..")
	if !is {
		sha, err := git.Resolve(ctx, repo, what)
		if err != nil {
			return nil, err
		}
		c, err := oneCommit(ctx, repo, sha)
		return []git.Commit{c}, err
	}
	if strings.HasPrefix(tip, ".") || base == "" || tip == "" {
		return nil, fault.Misused("write it as origin/main..HEAD", "%s is no range", text.Line(what))
	}
	ends := [2]string{}
	for i, rev := range []string{base, tip} {
		sha, err := git.Resolve(ctx, repo, rev)
		if err != nil {
			return nil, err
		}
		ends[i] = sha
	}
	return rangeOf(ctx, repo, ends[0], ends[1])
}

func rangeOf(ctx context.Context, repo *git.Repo, base, tip string) ([]git.Commit, error) {
	list, cut, err := repo.Range(ctx, tip, maxCommits, base)
	if err == nil && cut {
		err = fault.Misused("verify it in parts", "the range has more than %d commits", maxCommits)
	}
	return list, err
}

// Verifier holds commits to a policy.
type Verifier struct {
	Repo   *git.Repo
	Policy *Policy
	Files  []string // of more statements, beside the notes

	notes   map[string][]noted // by commit
	trees   map[string][]noted // by tree; only for MatchTree
	files   []*Envelope
	asked   map[string]bool // commits after the policy's start; nil = all
	journal map[string]string
}

// noted is a note of a commit, as read.
type noted struct {
	envelopes []*Envelope
	err       error
}

// Verify answers for each commit, in their order. The error is of the machine or of how it was
// asked, and means that nothing was found out.
func (v *Verifier) Verify(ctx context.Context, commits []git.Commit) ([]Answer, error) {
	if err := v.gather(ctx, commits); err != nil {
		return nil, err
	}
	out := make([]Answer, 0, len(commits))
	for _, c := range commits {
		a, err := v.answer(ctx, c)
		if err != nil {
			return nil, err
		}
		a.Commit, a.Subject, a.OK, a.Why = c.SHA, tree.Subject(c), a.Code == CodePass, text.Message(a.Why)
		out = append(out, a)
	}
	accompany(out)
	return out, nil
}

// accompany fails each commit that came along with a run's work if none of the commits after it has that work: a gate
// may have refused what it has by itself.
func accompany(oldestFirst []Answer) {
	later := map[attested]bool{}
	for i := range slices.Backward(oldestFirst) {
		a := &oldestFirst[i]
		if a.along && !slices.ContainsFunc(a.runs, func(run attested) bool { return later[run] }) {
			a.OK, a.Code = false, CodeUnsatisfied
			a.Why = "it came along with the work of " + text.Line(a.Run) + ", and none of the commits after it has that work"
		}
		for _, run := range a.runs {
			later[run] = later[run] || !a.along
		}
	}
}

// Code is the exit code of the answers: the worst.
func Code(answers []Answer) int {
	code := CodePass
	for _, a := range answers {
		code = max(code, a.Code)
	}
	return code
}

// gather reads the notes that may be needed, the files, and which commits are asked about.
func (v *Verifier) gather(ctx context.Context, commits []git.Commit) error {
	v.notes, v.trees, v.journal = map[string][]noted{}, map[string][]noted{}, map[string]string{}
	byTree := v.Policy.Match == MatchTree
	named := map[string]bool{}
	for _, c := range commits {
		named[c.SHA] = true
	}
	want := func(commit string) bool { return byTree || named[commit] }
	err := git.ReadNotes(ctx, v.Repo, NotesName, want, func(commit string, text []byte, tooLong error) error {
		n := noted{err: tooLong}
		if tooLong == nil {
			n.envelopes, n.err = split(text)
		}
		if named[commit] {
			v.notes[commit] = append(v.notes[commit], n)
		}
		if byTree && n.err == nil {
			v.index(n)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("the notes cannot be read: %w", err)
	}
	for _, f := range v.Files {
		if err := v.readFile(f); err != nil {
			return err
		}
	}
	if v.Policy.Start == "" {
		return nil
	}
	later, err := v.after(ctx, commits)
	v.asked = later
	return err
}

// index keeps the statements of a note by the trees they are about, as far as their signatures hold.
func (v *Verifier) index(n noted) {
	for _, e := range n.envelopes {
		s, _, err := e.open(v.Policy.Signers)
		if err != nil {
			continue
		}
		for _, sub := range s.Subject {
			v.trees[sub.Digest.Tree] = append(v.trees[sub.Digest.Tree], noted{envelopes: []*Envelope{e}})
		}
	}
}

func (v *Verifier) readFile(name string) error {
	abs, err := filepath.Abs(name)
	if err != nil {
		return err
	}
	data, err := atomicfile.Read(abs, maxInNote*maxEnvelope)
	if err != nil {
		return err
	}
	envelopes, err := split(data)
	if err != nil {
		return fault.Misused("name a file that `sluice attest` wrote", "%s: %v", text.Line(name), err)
	}
	v.files = append(v.files, envelopes...)
	return nil
}

// after returns those of the commits that are not the policy's start or an ancestor of it.
func (v *Verifier) after(ctx context.Context, commits []git.Commit) (map[string]bool, error) {
	if _, err := oneCommit(ctx, v.Repo, v.Policy.Start); err != nil {
		return nil, fault.Misused("fetch it, or correct the policy", "%s: start %.12s is no commit here", v.Policy.File,
			v.Policy.Start)
	}
	out := map[string]bool{}
	tips := map[string]string{}
	for i, c := range commits {
		tips[fmt.Sprint(i)] = c.SHA
	}
	later, cut, err := v.Repo.NewCommits(ctx, tips, []string{v.Policy.Start}, maxCommits)
	if err == nil && cut {
		err = fault.Misused("name a later start, or verify in parts", "%s: more than %d commits follow its start",
			v.Policy.File, maxCommits)
	}
	for _, c := range later {
		out[c.SHA] = true
	}
	return out, err
}

// answer judges one commit.
func (v *Verifier) answer(ctx context.Context, c git.Commit) (Answer, error) {
	if v.asked != nil && !v.asked[c.SHA] {
		return Answer{Why: fmt.Sprintf("not asked: it is the policy's start %.12s, or before it", v.Policy.Start)}, nil
	}
	if len(v.Policy.Paths)+len(v.Policy.Exempt) > 0 {
		changed, err := changes(ctx, v.Repo, c)
		if err != nil {
			return Answer{}, err
		}
		if !slices.ContainsFunc(changed, v.counts) {
			a, err := v.judge(ctx, c) // an earlier commit may need it as its run's work
			if a.along {
				a.runs = nil
			}
			return Answer{Why: "not asked: it changes no file that the policy is about", runs: a.runs}, err
		}
	}
	return v.judge(ctx, c)
}

// counts reports whether the policy is about a file.
func (v *Verifier) counts(file string) bool {
	in := func(globs []string) bool {
		return slices.ContainsFunc(globs, func(g string) bool { return gates.Matches(g, file) })
	}
	return (len(v.Policy.Paths) == 0 || in(v.Policy.Paths)) && !in(v.Policy.Exempt)
}
