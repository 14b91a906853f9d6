package git

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// MaxMessageBytes limits how much of a commit's message is kept.
	MaxMessageBytes = 64 << 10
	// maxCommitBytes limits how much of a commit object is read.
	maxCommitBytes = 1 << 20
	// maxObjectsBytes limits the total size of the objects of one call.
	maxObjectsBytes = 1 << 30
	// maxHeaderLine limits the line that names an object in git's answer.
	maxHeaderLine = 4 << 10
)

// Commit is one commit, as its author and committer claim: none of it is proof.
type Commit struct {
	SHA         string
	Tree        string
	Parents     []string
	AuthorName  string
	AuthorEmail string
	// CommitterName and CommitterEmail are whoever made this commit object, which for an amend or a
	// cherry-pick may not be the author.
	CommitterName, CommitterEmail string
	// AuthorDate survives an amend, a rebase and a cherry-pick; CommitDate does not.
	AuthorDate time.Time
	CommitDate time.Time
	Message    string   // valid UTF-8, at most MaxMessageBytes
	Refs       []string // the names of the tips that reach it, sorted
}

// NewCommits returns the commits reachable from the tips (object name by ref name, as Refs returns
// them) but not from notTips (object names), parents before children. It skips names on both sides
// that are not commits or no longer exist. It returns at most the newest max commits; cut reports
// that older ones were omitted.
func (r *objects) NewCommits(ctx context.Context, tips map[string]string, notTips []string,
	max int) (commits []Commit, cut bool, err error) {
	names := slices.Sorted(maps.Keys(tips))
	ask := make([]string, 0, len(tips)+len(notTips))
	for _, name := range names {
		ask = append(ask, tips[name])
	}
	ask = append(ask, notTips...)
	shas, err := r.Peel(ctx, ask)
	if err != nil {
		return nil, false, fmt.Errorf("new commits: %w", err)
	}
	var in bytes.Buffer
	for i, sha := range shas {
		switch {
		case sha == "":
		case i < len(names):
			in.WriteString(sha + "\n")
		default:
			in.WriteString("^" + sha + "\n")
		}
	}
	if in.Len() == 0 || len(names) == 0 {
		return nil, false, nil
	}
	if commits, cut, err = r.newest(ctx, &in, max, "--ignore-missing"); err != nil {
		return nil, false, fmt.Errorf("new commits: %w", err)
	}
	nameReaching(commits, names, shas[:len(names)])
	slices.Reverse(commits)
	return commits, cut, nil
}

// newest reads the commits that rev-list finds by its input, children first, at most `most`.
func (r *objects) newest(ctx context.Context, in io.Reader, most int, more ...string) (commits []Commit, cut bool,
	err error) {
	args := []string{"rev-list", "--topo-order", "--max-count=" + strconv.Itoa(most+1), "--stdin"}
	out, err := r.shadow(ctx, call{args: append(args, more...), stdin: in, limit: listOutput})
	if err != nil {
		return nil, false, err
	}
	list := strings.Fields(string(out))
	commits, err = r.readCommits(ctx, list[:min(len(list), most)])
	return commits, len(list) > most, err
}

// Root returns a first commit of the history of a commit: every whole clone of the repo has it.
func (r *objects) Root(ctx context.Context, commit string) (string, error) {
	if err := checkSHA(commit); err != nil {
		return "", err
	}
	return r.line(ctx, call{args: []string{"rev-list", "--max-parents=0", "--max-count=1", commit}, timeout: treeTime})
}

// Lacks reports whether a commit is not here, although the clone is whole.
func (r *objects) Lacks(ctx context.Context, commit string) (bool, error) {
	if r.shallow() != "" {
		return false, nil
	}
	shas, err := r.Peel(ctx, []string{commit})
	return err == nil && shas[0] == "", err
}

// nameReaching sets Refs. Commits come children first, so each passes its set on to its parents.
func nameReaching(commits []Commit, names, tips []string) {
	words := (len(names) + 63) / 64
	reached := make(map[string][]uint64, len(commits))
	for _, c := range commits {
		reached[c.SHA] = make([]uint64, words)
	}
	for i, sha := range tips {
		if set, ok := reached[sha]; ok {
			set[i/64] |= 1 << (i % 64)
		}
	}
	for i := range commits {
		set := reached[commits[i].SHA]
		for _, p := range commits[i].Parents {
			if up, ok := reached[p]; ok {
				for w := range set {
					up[w] |= set[w]
				}
			}
		}
		for n := range names {
			if set[n/64]&(1<<(n%64)) != 0 {
				commits[i].Refs = append(commits[i].Refs, names[n])
			}
		}
	}
}

// Peel returns the commit of each object name, or "" if it is missing or has none.
func (r *objects) Peel(ctx context.Context, names []string) (shas []string, err error) {
	if err := checkSHA(names...); err != nil || len(names) == 0 {
		return nil, err
	}
	in := strings.NewReader(strings.Join(names, "^{commit}\n") + "^{commit}\n")
	c := call{args: []string{"cat-file", "--batch-check=%(objectname) %(objecttype)"}, stdin: in, limit: listOutput}
	out, err := r.shadow(ctx, c)
	for line := range strings.Lines(string(out)) {
		sha, is := strings.CutSuffix(line, " commit\n")
		if !is {
			sha = ""
		}
		shas = append(shas, sha)
	}
	if err == nil && len(shas) != len(names) {
		err = fmt.Errorf("git cat-file answered %d of %d names", len(shas), len(names))
	}
	return shas, err
}

// readCommits reads the named commits in order, with a single git.
func (r *objects) readCommits(ctx context.Context, shas []string) ([]Commit, error) {
	commits := make([]Commit, 0, len(shas))
	err := r.eachObject(ctx, "commit", shas, callTime, func(i int, body []byte) error {
		commit, err := parseCommit(shas[i], body)
		commits = append(commits, commit)
		return err
	})
	return commits, err
}

// eachObject hands each the named objects, which must have this kind, in order, read by a single git.
func (r *objects) eachObject(ctx context.Context, kind string, shas []string, timeout time.Duration,
	each func(i int, body []byte) error) error {
	if len(shas) == 0 {
		return nil
	}
	c := call{args: []string{"cat-file", "--batch"}, stdin: strings.NewReader(strings.Join(shas, "\n") + "\n"),
		limit: maxObjectsBytes, timeout: timeout}
	return r.streamShadow(ctx, c, func(out io.Reader) error {
		br := bufio.NewReaderSize(out, maxHeaderLine)
		for i, sha := range shas {
			body, err := readObject(br, sha, kind)
			if err == nil {
				err = each(i, body)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// readObject reads the next object of a cat-file --batch answer, which must have this kind and
// name. It returns up to maxCommitBytes and skips the rest.
func readObject(br *bufio.Reader, sha, kind string) ([]byte, error) {
	line, err := br.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, sha, err)
	}
	f := strings.Fields(string(line))
	if len(f) != 3 || f[0] != sha || f[1] != kind {
		return nil, fmt.Errorf("%s %s: git answered %.80q", kind, sha, line)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size < 0 {
		return nil, fmt.Errorf("%s %s: git answered %.80q", kind, sha, line)
	}
	body := make([]byte, min(size, maxCommitBytes))
	if _, err := io.ReadFull(br, body); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, sha, err)
	}
	if _, err := io.CopyN(io.Discard, br, size-int64(len(body))+1); err != nil {
		return nil, fmt.Errorf("%s %s: %w", kind, sha, err)
	}
	return body, nil
}

var errBadCommit = errors.New("not the form of a commit")

// parseCommit reads a commit object. A malformed header leaves its field empty: handwritten objects
// must not prevent reading the others.
func parseCommit(sha string, body []byte) (Commit, error) {
	head, message, _ := strings.Cut(string(body), "\n\n")
	if !strings.HasPrefix(head, "tree ") {
		return Commit{}, fmt.Errorf("commit %s: %w", sha, errBadCommit)
	}
	c := Commit{SHA: sha}
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch key {
		case "tree":
			c.Tree = value
		case "parent":
			if checkSHA(value) == nil {
				c.Parents = append(c.Parents, value)
			}
		case "author":
			c.AuthorName, c.AuthorEmail, c.AuthorDate = parsePerson(value)
		case "committer":
			c.CommitterName, c.CommitterEmail, c.CommitDate = parsePerson(value)
		}
	}
	if len(message) > MaxMessageBytes {
		message = message[:MaxMessageBytes]
	}
	c.Message = strings.ToValidUTF8(message, "\uFFFD")
	if len(c.Message) > MaxMessageBytes {
		c.Message = strings.ToValidUTF8(c.Message[:MaxMessageBytes], "")
	}
	return c, nil
}

// parsePerson reads "Name <mail> seconds zone".
func parsePerson(s string) (name, email string, at time.Time) {
	open, end := strings.IndexByte(s, '<'), strings.LastIndexByte(s, '>')
	if open < 0 || end < open {
		return strings.ToValidUTF8(s, "\uFFFD"), "", time.Time{}
	}
	name = strings.ToValidUTF8(strings.TrimSpace(s[:open]), "\uFFFD")
	email = strings.ToValidUTF8(s[open+1:end], "\uFFFD")
	f := strings.Fields(s[end+1:])
	if len(f) == 0 {
		return name, email, time.Time{}
	}
	// JSON cannot represent times beyond the year 9999.
	sec, err := strconv.ParseInt(f[0], 10, 64)
	if err != nil || sec < 0 || sec > 253402300799 {
		return name, email, time.Time{}
	}
	return name, email, time.Unix(sec, 0).UTC()
}

// ParseListed reads one commit as `git rev-list --header` prints it: its name, then its object with
// each message line indented by four spaces.
func ParseListed(record string) (Commit, bool) {
	sha, body, ok := strings.Cut(strings.TrimLeft(record, "\n"), "\n")
	if !ok || checkSHA(sha) != nil {
		return Commit{}, false
	}
	head, message, _ := strings.Cut(body, "\n\n")
	var b strings.Builder
	for line := range strings.Lines(message) {
		b.WriteString(strings.TrimPrefix(line, "    "))
	}
	c, err := parseCommit(sha, []byte(head+"\n\n"+b.String()))
	return c, err == nil
}
