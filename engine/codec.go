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

// DecodeFact reads what EncodeFact wrote. It ignores unknown keys: a newer release may have added
// them.
func DecodeFact(raw []byte) (Fact, error) {
	kind, err := kindOf(raw)
	if err != nil {
		return nil, err
	}
	switch kind {
	case "settings_taken":
		return decode[SettingsTaken](kind, raw)
	case "run_started":
		return decode[RunStarted](kind, raw)
	case "run_began":
		return decode[RunBegan](kind, raw)
	case "needs_met":
		return decode[NeedsMet](kind, raw)
	case "step_started":
		return decode[StepStarted](kind, raw)
	case "step_skipped":
		return decode[StepSkipped](kind, raw)
	case "step_launched":
		return decode[StepLaunched](kind, raw)
	case "step_claimed":
		return decode[StepClaimed](kind, raw)
	case "grace_began":
		return decode[GraceBegan](kind, raw)
	case "step_signalled":
		return decode[StepSignalled](kind, raw)
	case "stop_ordered":
		return decode[StopOrdered](kind, raw)
	case "clock_held":
		return decode[ClockHeld](kind, raw)
	case "clock_begun":
		return decode[ClockBegun](kind, raw)
	case "deadline_moved":
		return decode[DeadlineMoved](kind, raw)
	case "clock_shifted":
		return decode[ClockShifted](kind, raw)
	case "process_gone":
		return decode[ProcessGone](kind, raw)
	case "usage_counted":
		return decode[UsageCounted](kind, raw)
	case "budget_neared":
		return decode[BudgetNeared](kind, raw)
	case "budget_lifted":
		return decode[BudgetLifted](kind, raw)
	case "day_budget_neared":
		return decode[DayBudgetNeared](kind, raw)
	case "note_taken":
		return decode[NoteTaken](kind, raw)
	case "step_held":
		return decode[StepHeld](kind, raw)
	case "step_handed_back":
		return decode[StepHandedBack](kind, raw)
	case "step_relaunched":
		return decode[StepRelaunched](kind, raw)
	case "check_started":
		return decode[CheckStarted](kind, raw)
	case "checked":
		return decode[Checked](kind, raw)
	case "hook_started":
		return decode[HookStarted](kind, raw)
	case "round_opened":
		return decode[RoundOpened](kind, raw)
	case "review_started":
		return decode[ReviewStarted](kind, raw)
	case "judged":
		return decode[Judged](kind, raw)
	case "inconclusive":
		return decode[Inconclusive](kind, raw)
	case "agreed":
		return decode[Agreed](kind, raw)
	case "window_opened":
		return decode[WindowOpened](kind, raw)
	case "human_asked":
		f, err := decode[HumanAsked](kind, raw)
		return f.upgraded(), err
	case "reminded":
		return decode[Reminded](kind, raw)
	case "gate_failed":
		return decode[GateFailed](kind, raw)
	case "retry_context_owed":
		return decode[RetryContextOwed](kind, raw)
	case "outputs_owed":
		return decode[OutputsOwed](kind, raw)
	case "advance_owed":
		return decode[AdvanceOwed](kind, raw)
	case "rewind_owed":
		return decode[RewindOwed](kind, raw)
	case "landing_owed":
		return decode[LandingOwed](kind, raw)
	case "write_done":
		return decode[WriteDone](kind, raw)
	case "signature_used":
		return decode[SignatureUsed](kind, raw)
	case "round_passed":
		return decode[RoundPassed](kind, raw)
	case "round_failed":
		return decode[RoundFailed](kind, raw)
	case "round_voided":
		return decode[RoundVoided](kind, raw)
	case "route_counted":
		return decode[RouteCounted](kind, raw)
	case "round_routed":
		return decode[RoundRouted](kind, raw)
	case "count_renewed":
		return decode[CountRenewed](kind, raw)
	case "exhausted_to":
		return decode[ExhaustedTo](kind, raw)
	case "count_reset":
		return decode[CountReset](kind, raw)
	case "step_passed":
		return decode[StepPassed](kind, raw)
	case "step_routed":
		return decode[StepRouted](kind, raw)
	case "step_superseded":
		return decode[StepSuperseded](kind, raw)
	case "work_sent":
		return decode[WorkSent](kind, raw)
	case "work_unsent":
		return decode[WorkUnsent](kind, raw)
	case "run_paused":
		return decode[RunPaused](kind, raw)
	case "run_resumed":
		return decode[RunResumed](kind, raw)
	case "run_ended":
		f, err := decode[RunEnded](kind, raw)
		return f.upgraded(), err
	case "run_reopened":
		return decode[RunReopened](kind, raw)
	case "run_forgotten":
		return decode[RunForgotten](kind, raw)
	case "file_taken":
		return decode[FileTaken](kind, raw)
	case "file_gone":
		return decode[FileGone](kind, raw)
	case "notice_owed":
		return decode[NoticeOwed](kind, raw)
	case "notice_tried":
		return decode[NoticeTried](kind, raw)
	case "ignored":
		return decode[Ignored](kind, raw)
	case "list_began":
		return decode[ListBegan](kind, raw)
	case "tasks_looked":
		return decode[TasksLooked](kind, raw)
	case "tasks_read":
		return decode[TasksRead](kind, raw)
	case "tasks_write_owed":
		return decode[TasksWriteOwed](kind, raw)
	case "tasks_written":
		return decode[TasksWritten](kind, raw)
	case "task_left":
		return decode[TaskLeft](kind, raw)
	case "task_ended":
		return decode[TaskEnded](kind, raw)
	case "tasks_added":
		return decode[TasksAdded](kind, raw)
	case "list_sent":
		return decode[ListSent](kind, raw)
	case "list_unsent":
		return decode[ListUnsent](kind, raw)
	case "list_sent_back":
		return decode[ListSentBack](kind, raw)
	case "triggers_armed":
		return decode[TriggersArmed](kind, raw)
	case "triggers_disarmed":
		return decode[TriggersDisarmed](kind, raw)
	case "trigger_fired":
		return decode[TriggerFired](kind, raw)
	case "trigger_skipped":
		return decode[TriggerSkipped](kind, raw)
	case "triggers_full":
		return decode[TriggersFull](kind, raw)
	case "triggers_opened":
		return decode[TriggersOpened](kind, raw)
	case "triggers_held":
		return decode[TriggersHeld](kind, raw)
	case "feedback_taken":
		return decode[FeedbackTaken](kind, raw)
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

func decode[T any](kind string, raw []byte) (T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return v, fmt.Errorf("decode %s: %w", kind, err)
	}
	return v, nil
}
