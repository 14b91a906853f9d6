package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
)

func (SettingsTaken) FactKind() string    { return "settings_taken" }
func (RunStarted) FactKind() string       { return "run_started" }
func (RunBegan) FactKind() string         { return "run_began" }
func (NeedsMet) FactKind() string         { return "needs_met" }
func (StepStarted) FactKind() string      { return "step_started" }
func (StepSkipped) FactKind() string      { return "step_skipped" }
func (StepLaunched) FactKind() string     { return "step_launched" }
func (StepClaimed) FactKind() string      { return "step_claimed" }
func (GraceBegan) FactKind() string       { return "grace_began" }
func (StepSignalled) FactKind() string    { return "step_signalled" }
func (StopOrdered) FactKind() string      { return "stop_ordered" }
func (DeadlineMoved) FactKind() string    { return "deadline_moved" }
func (ClockShifted) FactKind() string     { return "clock_shifted" }
func (TimeLost) FactKind() string         { return "time_lost" }
func (ClockHeld) FactKind() string        { return "clock_held" }
func (ClockBegun) FactKind() string       { return "clock_begun" }
func (ProcessGone) FactKind() string      { return "process_gone" }
func (UsageCounted) FactKind() string     { return "usage_counted" }
func (BudgetNeared) FactKind() string     { return "budget_neared" }
func (BudgetLifted) FactKind() string     { return "budget_lifted" }
func (DayBudgetNeared) FactKind() string  { return "day_budget_neared" }
func (NoteTaken) FactKind() string        { return "note_taken" }
func (StepHeld) FactKind() string         { return "step_held" }
func (StepHandedBack) FactKind() string   { return "step_handed_back" }
func (StepRelaunched) FactKind() string   { return "step_relaunched" }
func (WorkLost) FactKind() string         { return "work_lost" }
func (CheckStarted) FactKind() string     { return "check_started" }
func (Checked) FactKind() string          { return "checked" }
func (HookStarted) FactKind() string      { return "hook_started" }
func (RoundOpened) FactKind() string      { return "round_opened" }
func (ReviewStarted) FactKind() string    { return "review_started" }
func (Judged) FactKind() string           { return "judged" }
func (Inconclusive) FactKind() string     { return "inconclusive" }
func (Agreed) FactKind() string           { return "agreed" }
func (WindowOpened) FactKind() string     { return "window_opened" }
func (HumanAsked) FactKind() string       { return "human_asked" }
func (Reminded) FactKind() string         { return "reminded" }
func (GateFailed) FactKind() string       { return "gate_failed" }
func (RouteCounted) FactKind() string     { return "route_counted" }
func (RetryContextOwed) FactKind() string { return "retry_context_owed" }
func (OutputsOwed) FactKind() string      { return "outputs_owed" }
func (AdvanceOwed) FactKind() string      { return "advance_owed" }
func (RewindOwed) FactKind() string       { return "rewind_owed" }
func (LandingOwed) FactKind() string      { return "landing_owed" }
func (WriteDone) FactKind() string        { return "write_done" }
func (SignatureUsed) FactKind() string    { return "signature_used" }
func (RoundPassed) FactKind() string      { return "round_passed" }
func (RoundFailed) FactKind() string      { return "round_failed" }
func (RoundVoided) FactKind() string      { return "round_voided" }
func (RoundRouted) FactKind() string      { return "round_routed" }
func (CountRenewed) FactKind() string     { return "count_renewed" }
func (ExhaustedTo) FactKind() string      { return "exhausted_to" }
func (CountReset) FactKind() string       { return "count_reset" }
func (StepPassed) FactKind() string       { return "step_passed" }
func (StepRouted) FactKind() string       { return "step_routed" }
func (StepSuperseded) FactKind() string   { return "step_superseded" }
func (WorkSent) FactKind() string         { return "work_sent" }
func (WorkUnsent) FactKind() string       { return "work_unsent" }
func (RunPaused) FactKind() string        { return "run_paused" }
func (RunResumed) FactKind() string       { return "run_resumed" }
func (RunEnded) FactKind() string         { return "run_ended" }
func (RunReopened) FactKind() string      { return "run_reopened" }
func (RunForgotten) FactKind() string     { return "run_forgotten" }
func (FileTaken) FactKind() string        { return "file_taken" }
func (FileGone) FactKind() string         { return "file_gone" }
func (NoticeOwed) FactKind() string       { return "notice_owed" }
func (NoticeTried) FactKind() string      { return "notice_tried" }
func (Ignored) FactKind() string          { return "ignored" }
func (ListBegan) FactKind() string        { return "list_began" }
func (TasksLooked) FactKind() string      { return "tasks_looked" }
func (TasksRead) FactKind() string        { return "tasks_read" }
func (TasksWriteOwed) FactKind() string   { return "tasks_write_owed" }
func (TaskLeft) FactKind() string         { return "task_left" }
func (TasksWritten) FactKind() string     { return "tasks_written" }
func (TaskEnded) FactKind() string        { return "task_ended" }
func (TasksAdded) FactKind() string       { return "tasks_added" }
func (ListSent) FactKind() string         { return "list_sent" }
func (ListUnsent) FactKind() string       { return "list_unsent" }
func (ListSentBack) FactKind() string     { return "list_sent_back" }
func (FeedbackTaken) FactKind() string    { return "feedback_taken" }
func (TriggersArmed) FactKind() string    { return "triggers_armed" }
func (TriggersDisarmed) FactKind() string { return "triggers_disarmed" }
func (TriggerFired) FactKind() string     { return "trigger_fired" }
func (TriggerSkipped) FactKind() string   { return "trigger_skipped" }
func (TriggersFull) FactKind() string     { return "triggers_full" }
func (TriggersOpened) FactKind() string   { return "triggers_opened" }
func (TriggersHeld) FactKind() string     { return "triggers_held" }

// EncodeFact returns the fact as a JSON object whose first key is its kind.
func EncodeFact(f Fact) ([]byte, error) { return encode(f.FactKind(), f) }

// EncodeEvent returns the event as a JSON object whose first key is its kind.
func EncodeEvent(e Event) ([]byte, error) { return encode(e.EventKind(), e) }

func encode(kind string, v any) ([]byte, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", kind, err)
	}
	out := make([]byte, 0, len(body)+len(kind)+12)
	out = append(out, `{"kind":"`...)
	out = append(out, kind...)
	out = append(out, '"')
	if !bytes.Equal(body, []byte("{}")) {
		out = append(out, ',')
	}
	return append(out, body[1:]...), nil
}

// DecodeFact reads what EncodeFact wrote. It ignores unknown keys: a newer release may have added them.
func DecodeFact(raw []byte) (Fact, error) {
	kind, err := kindOf(raw)
	if err != nil {
		return nil, err
	}
	for _, known := range [...]struct {
		kind string
		read func(kind string, raw []byte) (Fact, error)
	}{
		{"settings_taken", read[SettingsTaken]},
		{"run_started", read[RunStarted]},
		{"run_began", read[RunBegan]},
		{"needs_met", read[NeedsMet]},
		{"step_started", read[StepStarted]},
		{"step_skipped", read[StepSkipped]},
		{"step_launched", read[StepLaunched]},
		{"step_claimed", read[StepClaimed]},
		{"grace_began", read[GraceBegan]},
		{"step_signalled", read[StepSignalled]},
		{"stop_ordered", read[StopOrdered]},
		{"clock_held", read[ClockHeld]},
		{"clock_begun", read[ClockBegun]},
		{"deadline_moved", read[DeadlineMoved]},
		{"clock_shifted", read[ClockShifted]},
		{"time_lost", read[TimeLost]},
		{"process_gone", read[ProcessGone]},
		{"usage_counted", read[UsageCounted]},
		{"budget_neared", read[BudgetNeared]},
		{"budget_lifted", read[BudgetLifted]},
		{"day_budget_neared", read[DayBudgetNeared]},
		{"note_taken", read[NoteTaken]},
		{"step_held", read[StepHeld]},
		{"step_handed_back", read[StepHandedBack]},
		{"step_relaunched", read[StepRelaunched]},
		{"work_lost", read[WorkLost]},
		{"check_started", read[CheckStarted]},
		{"checked", read[Checked]},
		{"hook_started", read[HookStarted]},
		{"round_opened", read[RoundOpened]},
		{"review_started", read[ReviewStarted]},
		{"judged", read[Judged]},
		{"inconclusive", read[Inconclusive]},
		{"agreed", read[Agreed]},
		{"window_opened", read[WindowOpened]},
		{"human_asked", read[HumanAsked]},
		{"reminded", read[Reminded]},
		{"gate_failed", read[GateFailed]},
		{"retry_context_owed", read[RetryContextOwed]},
		{"outputs_owed", read[OutputsOwed]},
		{"advance_owed", read[AdvanceOwed]},
		{"rewind_owed", read[RewindOwed]},
		{"landing_owed", read[LandingOwed]},
		{"write_done", read[WriteDone]},
		{"signature_used", read[SignatureUsed]},
		{"round_passed", read[RoundPassed]},
		{"round_failed", read[RoundFailed]},
		{"round_voided", read[RoundVoided]},
		{"route_counted", read[RouteCounted]},
		{"round_routed", read[RoundRouted]},
		{"count_renewed", read[CountRenewed]},
		{"exhausted_to", read[ExhaustedTo]},
		{"count_reset", read[CountReset]},
		{"step_passed", read[StepPassed]},
		{"step_routed", read[StepRouted]},
		{"step_superseded", read[StepSuperseded]},
		{"work_sent", read[WorkSent]},
		{"work_unsent", read[WorkUnsent]},
		{"run_paused", read[RunPaused]},
		{"run_resumed", read[RunResumed]},
		{"run_ended", read[RunEnded]},
		{"run_reopened", read[RunReopened]},
		{"run_forgotten", read[RunForgotten]},
		{"file_taken", read[FileTaken]},
		{"file_gone", read[FileGone]},
		{"notice_owed", read[NoticeOwed]},
		{"notice_tried", read[NoticeTried]},
		{"ignored", read[Ignored]},
		{"list_began", read[ListBegan]},
		{"tasks_looked", read[TasksLooked]},
		{"tasks_read", read[TasksRead]},
		{"tasks_write_owed", read[TasksWriteOwed]},
		{"tasks_written", read[TasksWritten]},
		{"task_left", read[TaskLeft]},
		{"task_ended", read[TaskEnded]},
		{"tasks_added", read[TasksAdded]},
		{"list_sent", read[ListSent]},
		{"list_unsent", read[ListUnsent]},
		{"list_sent_back", read[ListSentBack]},
		{"triggers_armed", read[TriggersArmed]},
		{"triggers_disarmed", read[TriggersDisarmed]},
		{"trigger_fired", read[TriggerFired]},
		{"trigger_skipped", read[TriggerSkipped]},
		{"triggers_full", read[TriggersFull]},
		{"triggers_opened", read[TriggersOpened]},
		{"triggers_held", read[TriggersHeld]},
		{"feedback_taken", read[FeedbackTaken]},
	} {
		if known.kind == kind {
			return known.read(kind, raw)
		}
	}
	return nil, fmt.Errorf("decode fact: kind %q is not known to this release: it was written by a newer one: upgrade",
		kind)
}

func kindOf(raw []byte) (string, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return "", fmt.Errorf("decode: %w", err)
	}
	return head.Kind, nil
}

func read[F Fact](kind string, raw []byte) (Fact, error) {
	var f F
	if err := json.Unmarshal(raw, &f); err != nil {
		return nil, fmt.Errorf("decode %s: %w", kind, err)
	}
	var fact Fact = f
	if old, ok := fact.(interface{ upgraded() Fact }); ok {
		return old.upgraded(), nil
	}
	return fact, nil
}
