package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
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
	for _, of := range [...]Fact{
		SettingsTaken{}, RunStarted{}, RunBegan{}, NeedsMet{}, StepStarted{}, StepSkipped{}, StepLaunched{},
		StepClaimed{}, GraceBegan{}, StepSignalled{}, StopOrdered{}, ClockHeld{}, ClockBegun{}, DeadlineMoved{},
		ClockShifted{}, TimeLost{}, ProcessGone{}, UsageCounted{}, BudgetNeared{}, BudgetLifted{},
		DayBudgetNeared{}, NoteTaken{}, StepHeld{}, StepHandedBack{}, StepRelaunched{}, WorkLost{}, CheckStarted{},
		Checked{}, HookStarted{}, RoundOpened{}, ReviewStarted{}, Judged{}, Inconclusive{}, Agreed{},
		WindowOpened{}, HumanAsked{}, Reminded{}, GateFailed{}, RetryContextOwed{}, OutputsOwed{}, AdvanceOwed{},
		RewindOwed{}, LandingOwed{}, WriteDone{}, SignatureUsed{}, RoundPassed{}, RoundFailed{}, RoundVoided{},
		RouteCounted{}, RoundRouted{}, CountRenewed{}, ExhaustedTo{}, CountReset{}, StepPassed{}, StepRouted{},
		StepSuperseded{}, WorkSent{}, WorkUnsent{}, RunPaused{}, RunResumed{}, RunEnded{}, RunReopened{},
		RunForgotten{}, FileTaken{}, FileGone{}, NoticeOwed{}, NoticeTried{}, Ignored{}, ListBegan{},
		TasksLooked{}, TasksRead{}, TasksWriteOwed{}, TasksWritten{}, TaskLeft{}, TaskEnded{}, TasksAdded{},
		ListSent{}, ListUnsent{}, ListSentBack{}, TriggersArmed{}, TriggersDisarmed{}, TriggerFired{},
		TriggerSkipped{}, TriggersFull{}, TriggersOpened{}, TriggersHeld{}, FeedbackTaken{},
	} {
		if of.FactKind() == kind {
			return read(of, raw)
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

// read reads a fact of the same type.
func read(of Fact, raw []byte) (Fact, error) {
	into := reflect.New(reflect.TypeOf(of))
	if err := json.Unmarshal(raw, into.Interface()); err != nil {
		return nil, fmt.Errorf("decode %s: %w", of.FactKind(), err)
	}
	fact := into.Elem().Interface().(Fact)
	if old, ok := fact.(interface{ upgraded() Fact }); ok {
		return old.upgraded(), nil
	}
	return fact, nil
}
