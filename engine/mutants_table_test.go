package engine

// mutants are wrong readings of 8-semantics: those its last table names, and more.
func mutants() []mutant {
	return append(append(mutantsOfJoins(), mutantsOfCounts()...), append(mutantsOfAnswers(), append(mutantsOfProcesses(), append(mutantsOfSpending(), mutantsOfIndex()...)...)...)...)
}

func mutantsOfSpending() []mutant {
	return []mutant{
		{"what was told before the end is counted twice", "apply_more.go", "	more := u.above(p.Usage)\n", "	more := u\n"},
		{"a snapshot forgets the day", "state.go", "`json:\"today,omitzero\"`", "`json:\"-\"`"},
		{"an attempt over its budget goes on", "budget.go", "		if why := d.spentUp(role, used); why != \"\" {\n", "		if why := d.spentUp(role, used); false && why != \"\" {\n"},
		{"a role's total is not kept", "budget.go", "		case limit.Tokens > 0 && used.Tokens >= limit.Tokens:\n", "		case false:\n"},
		{"a role that is not needed any more ends the run", "budget.go", "bound == \"\" || !d.plays(r, w, role) {", "bound == \"\" {"},
		{"a role is launched once more than it may", "budget.go", "	return limit > 0 && r.Roles[role].Launches >= limit\n", "	return limit > 0 && r.Roles[role].Launches > limit\n"},
		{"two of a role are launched at once where one may", "schedule.go", "			continue // what is launched before it", "			_ = 0 // what is launched before it"},
		{"what was never started is a launch of the role", "apply_more.go", "			o.spend(p.Role, Spend{Launches: -1})\n", ""},
		{"the wait for a slot is time of the role", "apply_more.go", "	if p.Waits {\n		return 0\n	}\n", ""},
		{"a role's time wakes nobody", "wake.go", "		at(time.Duration(limit.Time))\n", ""},
		{"a resumed run has no more for the role", "apply.go", "		r.RoleLimits[g.Role] = limit.Plus(g.Spend)\n", "		_ = limit\n"},
		{"launches are not counted for the day", "apply_more.go", "Spend{Launches: 1, Time: ran})", "Spend{Time: ran})"},
		{"an attempt over its budget is launched again", "decide_process.go", "over != \"\" && kind != \"\" && kind != ClassFatal {", "over == \"x\" {"},
		{"roles that are not named have no budget", "config.go", "	return c.Roles[AnyRole]\n", "	return RoleLimits{}\n"},
		{"a reviewer over its budget is launched again", "decide_process.go", "case over != \"\" && kind != ClassFatal && (", "case false && ("},
		{"agents of a run over its budget go on in its pause", "decide_run.go", "if key == \"max_tokens\" || key == \"max_cost_usd\" {", "if key == \"\" {"},
		{"a run's budget counts as a failure of the work", "decide_process.go", "	case endedForBudget(p, exit):\n		return ClassLimit,", "	case endedForBudget(p, exit):\n		return ClassWork,"},
		{"who ended by itself before the budget ended it has failed", "budget.go", "!exit.Stopped && exit.Signal == \"\" && !exit.Lost", "false"},
		{"four fifths are told each time", "budget.go", "	if r.Near[budget] == limit {\n		return\n	}\n", ""},
		{"the time's four fifths wake nobody", "wake.go", "m.see(r.BusySince.Add(nearMoment(r.TimeLimit) - time.Duration(r.Spent)))", "_ = nearMoment"},
		{"other settings lift no wait for the day", "decide.go", "	if other {\n", "	if false && other {\n"},
		{"the wait for the day counts as a restart", "decide_process.go", "NotBefore: until, Limit: true, Budget: ev.Exit.Budget})\n	case ClassInfrastructure:", "NotBefore: until, Limit: true})\n	case ClassInfrastructure:"},
		{"the day is told each time", "budget.go", "	if d.s.Today.told(f) {\n		return\n	}\n", ""},
		{"the worktree of a step taken over is free", "schedule.go", "		if a.Held != nil { // a person works there: ", "		if false { // a person works there: "},
		{"a takeover leaves the agent at work", "decide_steer.go", "		d.put(StopOrdered{of: Of(r.ID), Key: a.Key, Why: stopTakeover})\n", ""},
		{"the end of an agent taken over from is a failure", "decide_process.go", "	if a.Held != nil && (kind", "	if false && (kind"},
		{"a person's time with a step counts against max_duration", "apply_list.go", "a.State != Gating && !r.heldUp(a) && ", "a.State != Gating && "},
		{"the word before a takeover does not count", "apply.go", ", a.Failure, a.Broken, a.Held = f.LingerUntil, time.Time{}, f.Failure, f.Broken, nil\n", ", a.Failure, a.Broken = f.LingerUntil, time.Time{}, f.Failure, f.Broken\n"},
		{"what is handed back as done passes unchecked", "decide_steer.go", "Via: viaHandback + ev.By.Who", "Via: viaSpec"},
		{"what is handed back loses the words", "decide_steer.go", "			d.keepNote(r, ev.Step, ev.Text, ev.By)\n", ""},
		{"a step is taken over in another's worktree", "decide_steer.go", "o.holds[a.Tree] {", "false {"},
	}
}

func mutantsOfJoins() []mutant {
	return []mutant{
		{"a join starts when the first branch arrives", "joins.go", "	case x.below:\n", "	case x.below && !met:\n"},
		{"going back leaves what is downstream passed", "decide_gate.go", "if a := r.Current(id); a != nil {\n			d.put(StepSuperseded", "if a := r.Current(id); a != nil && (id == root || a.Live()) {\n			d.put(StepSuperseded"},
		{"a list goes to a step while its tasks run", "decide_list.go", "		if s.alive == 0 {\n			d.sendList", "		if true {\n			d.sendList"},
		{"a step that a list goes to gives new tries", "apply_list.go", "	if !f.Keep {\n		l.again()", "	if true {\n		l.again()"},
		{"new tasks of a task have depth 0", "decide_list.go", "f.Added, bad = addable(l, answer, t.Depth+1)", "f.Added, bad = addable(l, answer, 0)"},
		{"a list goes to on_missing for ever", "decide_list.go", "e.OnMissing != \"\" && l.Missing < maxFileGoes", "e.OnMissing != \"\""},
		{"a try that says blocked does not count", "apply_list.go", "	if f.Tried {\n", "	if f.Tried && f.State != TaskBlocked {\n"},
		{"every status in the file is taken", "decide_tasks.go", "own: l.Made || !l.Taint,", "own: true,"},
		{"what stands for a task does not wait for that task's needs", "tasks.go", "	for ; t != nil; t = l.by[t.For] {\n		for _, id", "	for n := 0; t != nil && n == 0; n++ {\n		for _, id"},
		{"a task whose run a person aborted is tried again by itself", "tasks.go", "t.State == TaskBlocked && !t.Held && ", "t.State == TaskBlocked && "},
		{"sent back with all done, a list has nothing to do", "decide_list.go", "if n := l.Tally(); n.Done == n.Total {", "if n := l.Tally(); n.Total < 0 {"},
		{"children outlive the step that was undone", "decide_list.go", "		if !wanted {\n			d.end2", "		if !wanted && o.Phase != RunRunning {\n			d.end2"},
		{"a list's own write, cut short, counts as an edit", "decide_tasks.go", "c != t.Base && c != ours && (t.Writing == \"\" || c != fileClass(t.Writing))", "c != t.Base && ours != \"\""},
		{"a look that nothing was started by is not asked for again", "decide_list.go", "		d.takeFeedback(r, l)\n		return // what was seen serves what follows\n", "		d.takeFeedback(r, l)\n"},
		{"a child is resumed while its parent is paused", "decide_run.go", "why == \"\" && o != nil && o.Paused {", "why == \"\" && o != nil && r.PausedWhy == PausedParent {"},
		{"a task ends before the hook of its run", "settle.go", "	if r.Child != nil && !r.Live() {\n", "	if false {\n"},
		{"a list begins a task in its parent's pause", "decide_list.go", "	if r.Paused { // what the file says", "	if false { // what the file says"},
		{"a pause stops at the first child", "decide_run.go", "			d.pauseChildren(k)\n", ""},
		{"completed while a process is alive", "settle.go", "if v.active == 0 && len(r.Procs) == 0 && len(r.Writes) == 0 && len(r.kids) == 0 {", "if v.active == 0 && len(r.Writes) == 0 {"},
		{"completed while a step is due", "joins.go", "	x.active, x.pending = true, true\n	v.active++\n	v.pending++\n", "	x.pending = true\n	v.pending++\n"},
		{"a fixing step stays passed when what sent it is undone", "decide_gate.go", "if in[from] && from != root || in[t] {", "if false && (in[from] && from != root || in[t]) {"},
		{"a step that only dead needs lead to holds up the run", "joins.go", "if st.byNeed && dead {", "if false && st.byNeed && dead {"},
		{"work led to a step that can never start waits for ever", "joins.go", "		x.blocked = true\n", "		_ = dead\n"},
		{"routed counts as passed", "state.go", "(a.State == Passed || a.State == Skipped) }", "(a.State == Passed || a.State == Skipped || a.State == Routed) }"},
		{"a pending run is looked at only when something happens to it", "index.go", "r.Parallel || r.flow.live[0] == r {", "false {"},
		{"an end leaves what is alive", "apply.go", "if r.Current(step).Live() {", "if false && r.Current(step).Live() {"},
		{"a pause withholds no launch", "schedule.go", "if !r.Paused && len(r.Writes) == 0 && !a.NotBefore.After(d.at) {", "if len(r.Writes) == 0 && !a.NotBefore.After(d.at) {"},
		{"the retry context is written after the launch", "schedule.go", "if !r.Paused && len(r.Writes) == 0 && !a.NotBefore.After(d.at) {", "if !r.Paused && !a.NotBefore.After(d.at) {"},
	}
}

func mutantsOfCounts() []mutant {
	return []mutant{
		{"what is let through is not told", "decide_gate.go", "		out.LetThrough = failures\n", "		out.LetThrough = 0 * failures\n"},
		{"what on_exhausted passes is not told", "decide_gate.go", "		f.LetThrough = r.Fails[g.ID]\n", ""},
		{"a side step counts as let through", "decide_gate.go", "	if w.passLeads(g.Step, f.target) ||", "	if w.graph.down[g.Step][f.target] ||"},
		{"a route that stops counts as let through", "decide_gate.go", "f.target == EndDone && named != EndDone {", "f.target == EndDone || named == EndDone {"},
		{"a failure counted before counts twice", "decide_gate.go", "		failures--\n", ""},
		{"exhausted at count == m", "decide_gate.go", "if r.Fails[g.ID] < g.MaxRetries {", "if r.Fails[g.ID] != g.MaxRetries {"},
		{"a route back is not counted", "decide_gate.go", "if !f.route || w.leadsBack(f.target, g.Step) {", "if !f.route {"},
		{"a pass resets the count", "apply.go", "	q.State, q.ByKind, q.By, q.Ended = Approved, f.ByKind, f.By, at\n", "	q.State, q.ByKind, q.By, q.Ended = Approved, f.ByKind, f.By, at\n	delete(s.at(f.Run).Fails, f.Gate)\n"},
		{"on_exhausted to a step, again and again", "decide_gate.go", "if w.Step(exh) != nil && r.Exhausted[g.ID] {", "if false && w.Step(exh) != nil && r.Exhausted[g.ID] {"},
		{"on_exhausted pass on a person's round", "decide_gate.go", "if personal && exh != EndFailed && exh != EndAborted {", "if false && personal && exh != EndFailed && exh != EndAborted {"},
		{"going back resets the gate's own count", "decide_gate.go", "if origin != \"\" && w.graph.down[id][origin] {", "if origin != \"\" {"},
		{"forced human is forgotten", "decide_gate.go", "	level := g.Reviewer.Level\n	if r.Forced[g.ID] {\n", "	level := g.Reviewer.Level\n	if false && r.Forced[g.ID] {\n"},
		{"a run that a limit ended before its step started is not retried", "decide_run.go", "if step == \"\" && len(r.Attempts[r.EndStep]) > 0 {", "if step == \"\" {"},
		{"max_steps lets one more pass", "settle.go", "r.Begun >= r.Allowance && st.ForEach == nil {", "r.Begun > r.Allowance && st.ForEach == nil {"},
		{"an inconclusive review passes", "decide_gate.go", "	d.ask(r, g, q, \"inconclusive: \"+why, false)\n", "	d.pass(r, g, q, \"reviewer\", nil, \"\")\n"},
		{"nothing is said for the last infrastructure failure", "decide_process.go", "		word.Status, word.Broken = StatusFailed, feedback(why, ev)\n		d.put(word)\n", "		word.Status, word.Broken = StatusFailed, feedback(why, ev)\n"},
		{"a usage limit counts as a restart", "apply.go", "	case ClassLimit:\n		a.Waits++\n", "	case ClassLimit:\n		a.Waits++\n		a.Restarts++\n"},
		{"waiting for a person counts against max_duration", "apply_list.go", "if q.State != OnHuman {", "if q.Open() {"},
	}
}

func mutantsOfAnswers() []mutant {
	return []mutant{
		{"a bare signal finishes whatever runs now", "decide_signal.go", "if ev.Written.Add(mtimeSlack).Before(a.Launched) {", "if false && ev.Written.Add(mtimeSlack).Before(a.Launched) {"},
		{"the word of an earlier launch counts", "decide_signal.go", "case s.Launch != 0 && s.Launch != a.K:", "case false:"},
		{"the word of an earlier attempt counts", "decide_signal.go", "case s.Attempt != 0 && s.Attempt != a.N:", "case false:"},
		{"a bare answer opens the next round", "decide_human.go", "case ev.Round == 0 && ev.Written.Add(mtimeSlack).Before(q.Opened):", "case false:"},
		{"an answer to an earlier round counts", "decide_human.go", "case ev.Round != 0 && ev.Round != q.N:", "case false:"},
		{"changed content is not noticed", "decide_human.go", "&& q.Digest != \"\" && ev.DigestNow != q.Digest:", "&& false:"},
		{"an agent answers for a person", "decide_human.go", "case !trusted(ev.By.Trust, q.Trust) || !trusted(ev.By.Trust, d.s.Config.Trust):", "case false:"},
		{"a round forgets that trust became stricter", "decide_human.go", " || !trusted(ev.By.Trust, d.s.Config.Trust):", ":"},
		{"a signature counts twice", "decide_signed.go", "	case spent:\n", "	case spent && false:\n"},
		{"a snapshot forgets which signatures were used", "state.go", "`json:\"spent,omitempty\"`   // signed", "`json:\"-\"` // signed"},
		{"a used signature is forgotten when it has expired", "decide_signed.go", "const spentFor = 30 * 24 * time.Hour", "const spentFor = 0 * time.Hour"},
		{"a signature is good for another run", "decide_signed.go", "case s.Run != r.ID:", "case false:"},
		{"a signature is good for another gate", "decide_signed.go", "case s.Gate != g.ID:", "case false:"},
		{"a signature is good for another outcome", "decide_signed.go", "case s.Outcome != ev.Outcome:", "case false:"},
		{"a signature is good for another round", "decide_signed.go", "case s.Round != q.N:", "case false:"},
		{"a signature is good for other content", "decide_signed.go", "case s.Digest != q.Digest:", "case false:"},
		{"a signature never expires", "decide_signed.go", "case !d.at.Before(s.Expires):", "case false:"},
		{"a signature may be good for ever", "decide_signed.go", "case s.Expires.After(d.at.Add(MaxSigned)):", "case false:"},
		{"a signature that does not hold is passed over", "decide_signed.go", "if ev.Unproven != \"\" {", "if false {"},
		{"what is said to be signed counts as such", "decide_signed.go", "if ev.Signed == nil && ev.By.Trust == TrustSigned {", "if false {"},
		{"any key passes any gate", "decide_signed.go", "if !slices.ContainsFunc(want, is) {", "if false {"},
		{"who worked approves", "decide_signed.go", "i >= 0 {", "i >= 0 && false {"},
		{"who took a step over did nothing", "apply_more.go", "	a.did(by.Who)\n", ""},
		{"who handed a step back did nothing", "apply_more.go", "	a.did(f.By.Who)\n}\n\n// heldUp", "}\n\n// heldUp"},
		{"who signals an interactive step did nothing", "decide_signal.go", "st.Agent.Launch == LaunchInteractive && ev.By.Via != ViaMCP {", "false {"},
		{"a subagent's signal is its person's", "decide_signal.go", "st.Agent.Launch == LaunchInteractive && ev", "ev"},
		{"who committed did nothing", "apply.go", "	a.did(f.Makers...)\n", ""},
		{"an orchestrating agent's claim is its person's", "apply_more.go", "if f.By.Via != ViaMCP {", "if true {"},
		{"a signed route is taken over changed content", "decide_human.go", "|| routed && ev.Signed != nil && q.State == OnHuman) &&", ") &&"},
		{"a void answer is not used up", "decide_human.go", "		d.used(r, g, q, ev)\n		d.put(RoundVoided", "		d.put(RoundVoided"},
		{"a person passes where none is asked", "decide_human.go", "case ev.Outcome == OutcomePass && q.State != OnHuman:", "case false:"},
		{"the verdict of a reviewer that crashed counts", "decide_process.go", "case ev.Verdict == nil || kind == ClassInfrastructure:", "case ev.Verdict == nil:"},
		{"a veto window runs out in a pause", "decide_process.go", "q.State == OnWindow && !r.Paused && passed(q.WindowEnds, ev.Began) {", "q.State == OnWindow && passed(q.WindowEnds, ev.Began) {"},
		{"a window closes at a scan begun before its end", "decide_process.go", "q.State == OnWindow && !r.Paused && passed(q.WindowEnds, ev.Began) {", "q.State == OnWindow && !r.Paused && passed(q.WindowEnds, d.at) {"},
		{"notify passes without a window", "decide_gate.go", "case outcome == OutcomePass && q.Level == LevelNotify:", "case false:"},
		{"a late veto is ignored", "decide_human.go", "case !q.takes(ev.Outcome):", "case !q.Open():"},
		{"a cherry-picked double counts", "decide_signal.go", "if old.Author != \"\" && old.Author == ev.Author {", "if false && old.Author == ev.Author {"},
	}
}

func mutantsOfProcesses() []mutant {
	return []mutant{
		{"a worktree is free when its attempt is superseded", "schedule.go", "			o.holds[p.Tree] = true\n", "			o.holds[p.Tree] = o.holds[p.Tree] || r.wanted(p)\n"},
		{"a worktree is free while its reviewer reads", "schedule.go", "launchKey(r.ID, g.ID, q.N, q.K+1), Tree: tree,", "launchKey(r.ID, g.ID, q.N, q.K+1),"},
		{"a worktree is free while it waits for its review", "schedule.go", "			o.next[a.Tree] = true // the tree waits for its review: no step slips in between\n", ""},
		{"an older review slips in between a step and its verdict", "schedule.go", "			continue // a later gate's review, which has let go of the tree once, does not slip in either\n", ""},
		{"who waits for a slot is overtaken in its own worktree", "schedule.go", "				o.next[tree] = true // it waits for a slot: nobody overtakes it in its own worktree\n", ""},
		{"a worktree on offer is free", "schedule.go", "if a.Offered || r.Proc(a.Key) == nil {", "if r.Proc(a.Key) == nil && !a.Offered {"},
		{"the worktrees of a run whose spec cannot be read are free", "schedule.go", "			r.holdUnread(o.holds)\n", ""},
		{"what ended while the spec could not be read is lost", "settle.go", "if d.endedUnread(r, w) || d.toGates(r, w)", "if d.toGates(r, w)"},
		{"a time-out changes the state by the way", "decide_process.go", "		switch g.OnTimeout {\n", "		q.Why = \"timeout\"\n		switch g.OnTimeout {\n"},
		{"an empty answer takes an earlier one's place", "apply.go", "		if len(f.Answer) > 0 {\n			a.Answer", "		if f.Answer != nil {\n			a.Answer"},
		{"a blocked task that has had a try is before one of better priority", "tasks.go", "	begun := a.doing()\n	if begun != b.doing() {", "	begun := a.Begun\n	if begun != b.Begun {"},
		{"a try that failed leaves the task for later", "apply_list.go", "	t.State, t.Child, t.Held, t.Updated = f.State, \"\", f.Held, at\n", "	t.State, t.Child, t.Held, t.Updated, t.Begun = f.State, \"\", f.Held, at, false\n"},
		{"tasks stand for tasks one deeper than they may", "decide_list.go", "case e.OnExhausted != \"\" && t.Depth < e.MaxDepth:", "case e.OnExhausted != \"\" && t.Depth <= e.MaxDepth:"},
		{"an iteration is no turn", "apply_list.go", "	l.Turns++\n", ""},
		{"an iteration that failed has had no turn", "apply_list.go", "	l.Turns++\n", "	if t.Runs == 1 {\n		l.Turns++\n	}\n"},
		{"a task that came back is taken for the one before", "apply_list.go", "			l.gone(id)\n", ""},
		{"a snapshot forgets the runs of tasks that are gone", "tasks.go", "`json:\"had,omitempty\"`", "`json:\"-\"`"},
		{"a snapshot forgets the turns", "tasks.go", "`json:\"turns,omitempty\"`", "`json:\"-\"`"},
		{"slots are not counted", "schedule.go", "slot && o.used >= d.s.Config.MaxParallel {", "slot && o.used > d.s.Config.MaxParallel {"},
		{"a relaunch has the key of the launch before", "decide.go", "strconv.Itoa(n) + \".\" + strconv.Itoa(k)", "strconv.Itoa(n) + \".\" + strconv.Itoa(min(k, 1))"},
		{"a restart resets every deadline", "decide_process.go", "a.State == Running && !a.Reopened && within(a.Deadline, ev) {", "a.State == Running && !a.Deadline.IsZero() {"},
		{"a deadline is opened again after every gap", "decide_process.go", "a.State == Running && !a.Reopened && within(a.Deadline, ev) {", "a.State == Running && within(a.Deadline, ev) {"},
		{"what is no longer wanted is not stopped", "owed.go", "		if !r.wanted(p) {\n", "		if !r.wanted(p) && !r.Live() {\n"},
	}
}

// mutantsOfIndex forget to bring in line what is kept beside the state.
func mutantsOfIndex() []mutant {
	return []mutant{
		{"what a fact changed is not told", "index.go", "	x.change(r)\n}\n\n// turn", "}\n\n// turn"},
		{"who waits for another workflow is not told", "index.go", "		s.waiting(specs, x.change)\n", ""},
		{"a file that has left its inbox is not told", "apply.go", "	delete(s.Moves, f.ID)\n	s.index.changeMove(f.ID)\n", "	delete(s.Moves, f.ID)\n"},
		{"a next moment stays though a fact changed it", "index.go", "	if !r.in.untimed {\n", "	if !r.in.untimed && r.next.IsZero() {\n"},
		{"a clock set back loses what comes again", "wake.go", "	if after.Before(x.woke) {", "	if false {"},
		{"a drawn view stays though a step was routed", "index.go", "StepPassed, StepRouted, StepSuperseded, WorkSent", "StepPassed, StepSuperseded, WorkSent"},
		{"a window is not among what a scan closes", "index.go", "		case OnWindow:\n			closes = true\n", ""},
		{"a review that waits is not among what wants to be launched", "index.go", "wants || r.Proc(q.Key) == nil", "wants"},
		{"an offer is not among what holds a worktree", "index.go", "			holds, closes = true, closes ||", "			closes = closes ||"},
		{"a run that is over stays among those that live", "index.go", "		x.live.drop(r)\n", ""},
		{"a snapshot read back knows no open round", "index.go", "q.gate = gate; q.Open() {", "q.gate = gate; false {"},
	}
}
