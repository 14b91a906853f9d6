package evidence

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"gopkg.in/yaml.v3"

	"sluice/engine"
	"sluice/internal/approval"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/text"
	"sluice/specs"
)

// Limits of a policy.
const (
	maxNodes      = 10_000
	maxList       = 1000
	maxValue      = 16 << 10 // bytes of a text: a key's line may be long
	policyVersion = 1
	maxFaults     = 20
)

// ParsePolicy reads a policy. file names it in messages. Every key is known and every value checked:
// a policy that is misread lets through what it was to stop. The error joins one for each fault, with
// file and line.
func ParsePolicy(file string, data []byte) (*Policy, error) {
	r := &reader{file: file, policy: &Policy{File: file, Match: MatchCommit, Accept: []string{HowWork}}}
	root, err := r.document(data)
	if err != nil {
		return nil, err
	}
	version := 0
	keys := r.mapping(root, map[string]func(*yaml.Node){
		"version":    func(n *yaml.Node) { version = r.number(n) },
		"start":      func(n *yaml.Node) { r.policy.Start = r.object(n) },
		"match":      func(n *yaml.Node) { r.policy.Match = r.oneOf(n, MatchCommit, MatchTree) },
		"accept":     func(n *yaml.Node) { r.policy.Accept = r.several(n, HowWork, HowMerged, HowCarried) },
		"unfinished": func(n *yaml.Node) { r.policy.Unfinished = r.yes(n) },
		"signers":    func(n *yaml.Node) { r.policy.Signers.Signers = r.keys(n) },
		"approvers":  func(n *yaml.Node) { r.policy.Approvers.Signers = r.keys(n) },
		"pages":      func(n *yaml.Node) { r.policy.Approvers.Passkeys = r.pages(n) },
		"gates":      func(n *yaml.Node) { r.policy.Gates = r.gates(n) },
		"workflows":  func(n *yaml.Node) { r.policy.Workflows = r.texts(n) },
		"specs":      func(n *yaml.Node) { r.policy.Specs = r.digests(n) },
		"paths":      func(n *yaml.Node) { r.policy.Paths = r.texts(n) },
		"exempt":     func(n *yaml.Node) { r.policy.Exempt = r.texts(n) },
	})
	if version != policyVersion && keys["version"] {
		r.fault(root, "version: this sluice reads version %d", policyVersion)
	}
	for _, key := range []string{"version", "signers", "gates"} {
		if !keys[key] {
			r.fault(root, "%s is missing", key)
		}
	}
	r.signed()
	return r.policy, errors.Join(r.faults...)
}

// signed faults a rule for signed answers that no key could meet.
func (r *reader) signed() {
	for _, g := range r.policy.Gates {
		at := &yaml.Node{Line: g.Line, Column: 1}
		if g.Trust != engine.TrustSigned {
			continue
		}
		if len(r.policy.Approvers.Signers) == 0 {
			r.fault(at, "gate %s wants a signed answer, and approvers has no key", g.Gate)
		}
		for _, name := range g.By {
			has := func(s approval.Signer) bool { return s.Named([]string{name}) }
			if !slices.ContainsFunc(r.policy.Approvers.Signers, has) {
				r.fault(at, "gate %s: approvers has no key of %s", g.Gate, name)
			}
		}
	}
}

// reader collects the faults of a policy.
type reader struct {
	file   string
	policy *Policy
	faults []error
}

func (r *reader) fault(n *yaml.Node, format string, args ...any) {
	if len(r.faults) < maxFaults {
		e := fault.At(r.file, max(n.Line, 1), max(n.Column, 1), "%s", text.Message(fmt.Sprintf(format, args...)))
		e.Code = fault.ExitUsage
		r.faults = append(r.faults, e)
	}
}

// document returns the root of the only document.
func (r *reader) document(data []byte) (*yaml.Node, error) {
	bad := func(line int, format string, args ...any) (*yaml.Node, error) {
		r.fault(&yaml.Node{Line: line}, format, args...)
		return nil, errors.Join(r.faults...)
	}
	if len(data) > maxPolicy || !utf8.Valid(data) {
		return bad(1, "want UTF-8 text of at most %d bytes", maxPolicy)
	}
	doc, rest, err := specs.Decode(data)
	switch {
	case err != nil:
		line, why := specs.YAMLFault(data, err)
		return bad(line, "not YAML: %s", why)
	case doc == nil || len(doc.Content) == 0:
		return bad(1, "the policy is empty")
	case rest != nil:
		return bad(rest.Line, "more than one document: want one")
	}
	count := 0
	if n := r.plain(doc, &count); n != nil || count > maxNodes {
		if n == nil {
			n = doc
		}
		return bad(n.Line, "want at most %d values, and no anchors, aliases or tags", maxNodes)
	}
	return doc.Content[0], nil
}

// plain counts the nodes and returns the first that is an alias, or has an anchor or a tag of its own.
func (r *reader) plain(n *yaml.Node, count *int) *yaml.Node {
	if *count++; n.Kind == yaml.AliasNode || n.Anchor != "" || n.Style&yaml.TaggedStyle != 0 {
		return n
	}
	for _, c := range n.Content {
		if bad := r.plain(c, count); bad != nil {
			return bad
		}
	}
	return nil
}

// mapping reads the known keys of a mapping, each once, and returns which are there.
func (r *reader) mapping(n *yaml.Node, known map[string]func(*yaml.Node)) map[string]bool {
	seen := map[string]bool{}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "want keys with values here")
		return seen
	}
	names := slices.Sorted(maps.Keys(known))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		read, ok := known[key]
		switch {
		case !ok:
			r.fault(n.Content[i], "%s: no such key%s", text.Line(text.Clip(key, 60)), text.DidYouMean(key, names))
		case seen[key]:
			r.fault(n.Content[i], "%s is there twice", key)
		default:
			seen[key] = true
			read(n.Content[i+1])
		}
	}
	return seen
}

func (r *reader) text(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Value == "" || len(n.Value) > maxValue {
		r.fault(n, "want a text")
		return ""
	}
	return n.Value
}

// list returns the entries of a list of so many.
func (r *reader) list(n *yaml.Node, of string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxList {
		r.fault(n, "want a list of 1 to %d %s", maxList, of)
		return nil
	}
	return n.Content
}

func (r *reader) texts(n *yaml.Node) (out []string) {
	for _, c := range r.list(n, "texts") {
		out = append(out, r.text(c))
	}
	return out
}

func (r *reader) several(n *yaml.Node, words ...string) (out []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		r.fault(n, "want a list of %s", text.JoinMost(words))
		return nil
	}
	for _, c := range n.Content {
		out = append(out, r.oneOf(c, words...))
	}
	return out
}

func (r *reader) oneOf(n *yaml.Node, words ...string) string {
	if n.Kind != yaml.ScalarNode || !slices.Contains(words, n.Value) {
		r.fault(n, "want one of %s", text.JoinMost(words))
	}
	return n.Value
}

func (r *reader) yes(n *yaml.Node) bool {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!bool" {
		r.fault(n, "want true or false")
	}
	return n.Value == "true"
}

func (r *reader) number(n *yaml.Node) int {
	v, err := strconv.Atoi(n.Value)
	if err != nil || n.Kind != yaml.ScalarNode {
		r.fault(n, "want a number")
	}
	return v
}

func (r *reader) object(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || !git.IsName(n.Value) {
		r.fault(n, "want the whole name of a commit: 40 or 64 hex digits, as `git rev-parse` prints it")
	}
	return n.Value
}

func (r *reader) digests(n *yaml.Node) []string {
	list := r.texts(n)
	for i, d := range list {
		if d == SpecsOfBase {
			continue
		}
		if raw, err := hex.DecodeString(d); err != nil || len(raw) != 32 {
			r.fault(n.Content[i], "want a SHA-256 in hex, as `sha256sum .workflow/specs/ID.yaml` prints it, or %s", SpecsOfBase)
		}
	}
	return list
}

// keys reads lines of OpenSSH's allowed_signers.
func (r *reader) keys(n *yaml.Node) (out []approval.Signer) {
	for i, line := range r.texts(n) {
		list, err := approval.ParseList([]byte(line))
		if err != nil || len(list) != 1 {
			r.fault(n.Content[i], "want one line of allowed_signers, NAME KIND KEY: %v", err)
			continue
		}
		same := func(s approval.Signer) bool { return s.Key == list[0].Key }
		if slices.ContainsFunc(out, same) {
			r.fault(n.Content[i], "key %s is there twice", list[0].Key)
		}
		out = append(out, list[0])
	}
	return out
}

// pages reads at which page each passkey counts.
func (r *reader) pages(n *yaml.Node) map[string]approval.Passkey {
	out := map[string]approval.Passkey{}
	if n.Kind != yaml.MappingNode {
		r.fault(n, "want FINGERPRINT: ADDRESS, a line for each passkey")
		return out
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		out[n.Content[i].Value] = approval.Passkey{Origin: r.text(n.Content[i+1])}
	}
	return out
}

func (r *reader) gates(n *yaml.Node) (out []Rule) {
	for _, c := range r.list(n, "gates") {
		g := Rule{Judged: JudgedCommit, Line: c.Line}
		if c.Kind == yaml.ScalarNode {
			g.Gate = r.text(c)
		} else {
			r.mapping(c, map[string]func(*yaml.Node){
				"gate":   func(n *yaml.Node) { g.Gate = r.text(n) },
				"judged": func(n *yaml.Node) { g.Judged = r.oneOf(n, JudgedCommit, JudgedRun) },
				"trust": func(n *yaml.Node) {
					g.Trust = r.oneOf(n, engine.TrustFile, engine.TrustSandbox, engine.TrustForge, engine.TrustSigned)
				},
				"by":      func(n *yaml.Node) { g.By = r.texts(n) },
				"skipped": func(n *yaml.Node) { g.Skipped = r.yes(n) },
			})
			if g.Gate == "" {
				r.fault(c, "gate is missing")
			}
		}
		if slices.ContainsFunc(out, func(o Rule) bool { return o.Gate == g.Gate }) {
			r.fault(c, "gate %s is there twice", g.Gate)
		}
		out = append(out, g)
	}
	return out
}
