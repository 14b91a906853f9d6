package approval

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"sluice/internal/fault"
	"sluice/internal/findings"
	"sluice/internal/ids"
	"sluice/internal/strictjson"
	"sluice/internal/text"
)

// Namespaces of the signatures: one made for the one is worth nothing for the other.
const (
	GateNamespace     = "sluice-gate"
	AuditNamespace    = "sluice-audit"
	EvidenceNamespace = "sluice-evidence"
)

// MaxBytes bounds a signed text with its signature.
const MaxBytes = 64 << 10

const (
	maxField = 300 // bytes of one value
	maxRound = 1 << 30
)

// The first lines. A later form has another number.
const (
	headApproval   = "sluice approval 1"
	headAnswer     = "sluice approval 2" // with an answer
	headComments   = "sluice approval 3" // with comments on lines
	headCheckpoint = "sluice checkpoint 1"
)

// The lines that have the answer and the comments. They may be as long as the text.
const (
	answerLine   = "answer"
	commentsLine = "findings"
)

// none stands where a value is empty.
const none = "-"

// Approval is a person's word at a gate, bound to what it is about.
type Approval struct {
	Repo     string // the journal's id; of a journal without one, and in older ones, the repo-id
	Run      string
	Gate     string
	Round    int    // from 1
	Decision string // pass, fail, veto or a route's name
	Reviewed string // digest of what was reviewed; "" = there was nothing to be bound to
	Nonce    string // random: the approval counts once
	Expires  time.Time
	Words    string // the words given with it
	Answer   string // what a pass gives beside them: JSON on one line; "" = nothing
	Findings string // what a fail gives beside them: the comments on lines, as JSON on one line; "" = none
}

// Text is what is signed.
func (a Approval) Text() []byte {
	var b strings.Builder
	head := headApproval
	switch {
	case a.Answer != "":
		head = headAnswer
	case a.Findings != "":
		head = headComments
	}
	fmt.Fprintf(&b, "%s\nrepo: %s\nrun: %s\ngate: %s\nround: %d\ndecision: %s\nreviewed: %s\nnonce: %s\nexpires: %s\n",
		head,
		a.Repo, a.Run, a.Gate, a.Round, a.Decision, cmp.Or(a.Reviewed, none), a.Nonce, stamp(a.Expires))
	if a.Answer != "" {
		b.WriteString(answerLine + ": " + a.Answer + "\n")
	} else if a.Findings != "" {
		b.WriteString(commentsLine + ": " + a.Findings + "\n")
	}
	if w := Words(a.Words); w != "" {
		b.WriteString("\n" + w + "\n")
	}
	return []byte(b.String())
}

// Words is a text as it stands in an approval: line ends of another system and the space around are gone.
func Words(s string) string {
	return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n"))
}

// ParseApproval reads what Text wrote, and nothing else: each text has one reading.
func ParseApproval(text []byte) (Approval, error) {
	head, names := headApproval, []string{"repo", "run", "gate", "round", "decision", "reviewed", "nonce", "expires"}
	if bytes.HasPrefix(text, []byte(headAnswer+"\n")) {
		head, names = headAnswer, append(names, answerLine)
	} else if bytes.HasPrefix(text, []byte(headComments+"\n")) {
		head, names = headComments, append(names, commentsLine)
	}
	f, words, err := fields(text, head, names...)
	if err == nil && head == headAnswer {
		err = strictjson.Object([]byte(f[answerLine]), MaxBytes)
	}
	if err == nil && head == headComments {
		err = cleaned(f[commentsLine])
	}
	if err != nil {
		return Approval{}, fmt.Errorf("approval: %w", err)
	}
	a := Approval{Repo: f["repo"], Run: f["run"], Gate: f["gate"], Decision: f["decision"], Reviewed: f["reviewed"],
		Nonce: f["nonce"], Words: Words(words),
		Answer: f[answerLine], Findings: f[commentsLine]}
	if a.Reviewed == none {
		a.Reviewed = ""
	}
	if a.Round, err = strconv.Atoi(f["round"]); err != nil || a.Round < 1 || a.Round > maxRound {
		return Approval{}, fmt.Errorf("approval: round: %q is not the number of a round", f["round"])
	}
	if a.Expires, err = parseStamp(f["expires"]); err != nil {
		return Approval{}, fmt.Errorf("approval: expires: %w", err)
	}
	if !ids.Hex(a.Nonce, nonceBytes) {
		return Approval{}, errors.New("approval: nonce: want 32 hexadecimal digits")
	}
	if !bytes.Equal(a.Text(), text) {
		return Approval{}, fault.New("write it again (sluice pass GATE --unsigned -o FILE)",
			"approval: it is not as sluice writes it")
	}
	return a, nil
}

// cleaned returns why the comments are not as sluice writes them.
func cleaned(list string) error {
	clean, err := findings.Clean(json.RawMessage(list))
	if err == nil && string(clean) != list {
		err = errors.New("the comments are not as sluice writes them")
	}
	return err
}

// nonceBytes is how long a nonce is, before it is written in hexadecimal.
const nonceBytes = 16

// NewNonce returns a random nonce.
func NewNonce() string {
	nonce := make([]byte, nonceBytes)
	_, _ = rand.Read(nonce) // on an error it ends the program
	return hex.EncodeToString(nonce)
}

// Checkpoint says that the journal of a repo had the record Seq with the sum Sum.
type Checkpoint struct {
	Repo string
	Seq  int64
	Sum  string // hex
	At   time.Time
}

// Text is what is signed.
func (c Checkpoint) Text() []byte {
	return fmt.Appendf(nil, "%s\nrepo: %s\nrecord: %d\nsum: %s\nat: %s\n", headCheckpoint, c.Repo, c.Seq, c.Sum,
		stamp(c.At))
}

// ParseCheckpoint reads what Text wrote, and nothing else.
func ParseCheckpoint(text []byte) (Checkpoint, error) {
	f, _, err := fields(text, headCheckpoint, "repo", "record", "sum", "at")
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: %w", err)
	}
	c := Checkpoint{Repo: f["repo"], Sum: f["sum"]}
	if c.Seq, err = strconv.ParseInt(f["record"], 10, 64); err != nil || c.Seq < 1 {
		return Checkpoint{}, fmt.Errorf("checkpoint: record: %q is not the number of a record", f["record"])
	}
	if c.At, err = parseStamp(f["at"]); err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: at: %w", err)
	}
	if !bytes.Equal(c.Text(), text) {
		return Checkpoint{}, errors.New("checkpoint: it is not as sluice writes it")
	}
	return c, nil
}

// fields reads the head, the named lines in their order, and the words after an empty line.
func fields(raw []byte, head string, names ...string) (map[string]string, string, error) {
	if len(raw) > MaxBytes {
		return nil, "", fmt.Errorf("more than %d bytes", MaxBytes)
	}
	if !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0 {
		return nil, "", errors.New("it is not UTF-8 text")
	}
	first, rest, _ := strings.Cut(string(raw), "\n")
	if first != head {
		return nil, "", fmt.Errorf("it begins with %q: want %q", text.Clip(first, 60), head)
	}
	out := map[string]string{}
	for _, name := range names {
		var line string
		line, rest, _ = strings.Cut(rest, "\n")
		value, ok := strings.CutPrefix(line, name+": ")
		if !ok || value == "" || len(value) > maxField && name != answerLine && name != commentsLine {
			return nil, "", fmt.Errorf("%s: its line is missing, empty or too long", name)
		}
		out[name] = value
	}
	return out, rest, nil
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func parseStamp(s string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil || !strings.HasSuffix(s, "Z") {
		return time.Time{}, fmt.Errorf("%q is not a time such as 2026-11-21T17:30:00Z", text.Clip(s, 60))
	}
	return t.UTC(), nil
}
