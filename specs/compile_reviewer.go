package specs

import (
	"slices"
	"strings"

	"sluice/engine"
	"sluice/internal/ids"
	"sluice/internal/schema"
)

// reviewer checks who evaluates: at auto and notify exactly one of agent_type, run, from; at human
// none.
func (c *gateRows) reviewer(d *gateDoc, what string) engine.Reviewer {
	r := d.Reviewer
	what += ": reviewer"
	out := engine.Reviewer{
		Level: r.Level.value, AgentType: r.AgentType.value, FromStep: r.From.value == "step", Trust: r.Trust.value,
		Run:     c.judge(r.Run, inGate, what+": run"),
		Prompt:  c.text(c.whole(r.Prompt, what+": prompt"), inGate, what+": prompt", nil),
		Session: c.session(r.Session, inGate, what+": session"),
	}
	if out.Trust == "auto" {
		out.Trust = ""
	}
	if bad := ids.Fault(r.AgentType.value); r.AgentType.set() && bad != "" {
		c.at(r.AgentType.node, "%s: agent_type %s %s", what, quote(r.AgentType.value), bad)
	}
	out.Rubric = c.distinct(r.Rubric, what+": rubric", ids.Fault)
	out.Approvers, out.Forge = c.approvers(r, what), c.judgedBy(r, what)
	if out.AtForge() && out.Trust == engine.TrustSigned {
		c.at(r.key("trust"), "%s: trust: signed lets no forge:LOGIN decide: remove one of them", what)
	}
	var who []string
	for _, key := range []string{"agent_type", "run", "from", "forge"} {
		if r.has(key) {
			who = append(who, key)
		}
	}
	switch level := out.Level; {
	case level == engine.LevelHuman && len(who) > 0:
		c.at(r.key(who[0]), "%s: %s has no meaning at level human: there a human decides, and nothing is run: take level "+
			"notify or auto, or remove it", what, who[0])
	case (level == engine.LevelAuto || level == engine.LevelNotify) && len(who) == 0:
		c.at(r.Node, "%s: at level %s exactly one of agent_type, run, from: step, forge is needed", what, level)
	case (level == engine.LevelAuto || level == engine.LevelNotify) && len(who) > 1:
		c.at(r.key(who[1]), "%s: %s and %s: exactly one of agent_type, run, from, forge is needed", what, who[0], who[1])
	}
	if !r.has("agent_type") && out.Level != engine.LevelHuman {
		for _, key := range []string{"prompt", "session", "rubric"} {
			if r.has(key) {
				c.at(r.key(key), "%s: %s is for an agent, and no agent_type reviews here", what, key)
			}
		}
	}
	return out
}

// judgedBy returns what the forge judges by.
func (c *gateRows) judgedBy(r *reviewerDoc, what string) []string {
	words := []string{engine.ForgeChecks, engine.ForgeReviews}
	if r.has("forge") && len(r.Forge.items) == 0 {
		c.at(r.key("forge"), "%s: forge names nothing to judge by: want [checks], [reviews] or both", what)
	}
	return c.distinct(r.Forge, what+": forge", func(s string) string {
		if slices.Contains(words, s) {
			return ""
		}
		return "is an unknown word" + c.oneOf(s, words)
	})
}

// approvers returns the principals of `sluice keys` and the accounts at the forge. An empty list is
// a fault: it would require nothing.
func (c *gateRows) approvers(r *reviewerDoc, what string) []string {
	if r.has("approvers") && len(r.Approvers.items) == 0 {
		c.at(r.key("approvers"), "%s: approvers names nobody: name who may decide here, or leave it out", what)
	}
	return c.distinct(r.Approvers, what+": approvers", func(s string) string {
		name, atForge := strings.CutPrefix(s, engine.ForgePrefix)
		switch {
		case atForge && !login(name):
			return "is not forge:LOGIN (forge:ann)"
		case len(s) > maxApprover, strings.ContainsFunc(s, func(c rune) bool {
			return c <= ' ' || c >= 0x7f || strings.ContainsRune(`*?!,"'\#`, c)
		}):
			return "is not a name that sluice keys ls shows (ann@example.org)"
		}
		return ""
	})
}

// maxApprover is the longest name of an approver.
const maxApprover = 200

// human checks what depends on whether a human decides (8-semantics, rules 5 and 6).
func (c *gateRows) human(d *gateDoc, g *engine.Gate, what string) {
	level := g.Reviewer.Level
	human := level == engine.LevelHuman
	g.OnExhausted, g.OnTimeout = engine.Human, "remind"
	if to, ok := c.target(d.OnExhausted, what+": on_exhausted", engine.Human, engine.OutcomePass); ok {
		g.OnExhausted = to
		if human && !slices.Contains([]string{engine.Human, engine.EndFailed, engine.EndAborted}, to) {
			c.at(d.OnExhausted.node,
				"%s: on_exhausted: %s would go on without the human: at level human it is human, FAILED or ABORTED", what, to)
		}
	}
	if t := d.OnTimeout; t.set() {
		g.OnTimeout = t.value
		words := []string{"remind", "fail", engine.EndDone, engine.EndFailed, engine.EndAborted}
		switch {
		case t.value == engine.OutcomePass:
			c.at(t.node, "%s: on_timeout is never pass: nobody has decided: take remind, fail, FAILED or ABORTED", what)
		case !slices.Contains(words, t.value):
			c.at(t.node, "%s: on_timeout: unknown word %s%s", what, quote(t.value), c.oneOf(t.value, words))
		case human && t.value == engine.EndDone:
			c.at(t.node, "%s: on_timeout: DONE would go on without the human: at level human it is remind, fail, "+
				"FAILED or ABORTED", what)
		case !d.Timeout.set():
			c.at(t.node, "%s: on_timeout has no meaning without timeout", what)
		}
	}
	if d.VetoWindow.set() && level != engine.LevelNotify && level != "" {
		c.at(d.key("veto_window"), "%s: veto_window has a meaning at level notify only", what)
	}
	if !human {
		return
	}
	if n := d.Keys["verdict"]; n != nil {
		c.at(n, "%s: verdict has no meaning at level human: the human's word decides", what)
	}
	if g.Answer != nil && len(g.Answer.Source) > 0 {
		if s, err := schema.Compile(g.Answer.Source); err == nil && len(s.Properties()) == 0 {
			c.at(d.Answer.node, "%s: answer: at level human a person is asked for its properties, and it has none: give it "+
				"`properties`", what)
		}
	}
	if n := d.Keys["outputs"]; n != nil && g.Answer == nil && d.Answer.node == nil {
		c.at(n, "%s: outputs are written from the answer, and at level human nobody gives one here: add `answer`, or "+
			"remove them", what)
	}
	for _, key := range []string{"session", "rubric"} {
		if d.Reviewer.has(key) {
			c.at(d.Reviewer.key(key), "%s: reviewer: %s has no meaning at level human: no agent reviews", what, key)
		}
	}
	c.whenOfHuman(d.When.scalar, inGate, what+": when")
	if s := c.steps[g.Step]; s != nil {
		c.whenOfHuman(s.When.scalar, inStep, "step "+g.Step+": when (its gate "+g.ID+" is human)")
	}
}

// whenOfHuman ensures that no agent's output can skip a human gate.
func (c *gateRows) whenOfHuman(t scalar, s scope, what string) {
	if !t.set() {
		return
	}
	code, _ := c.world.compile(t.value, s, asCond, func(string, []string) string { return "" })
	if code != nil && !code.varsOnly() {
		c.at(t.node, "%s reads more than vars: what an agent says may not pass over a human", what)
	}
}
