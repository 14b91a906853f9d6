package importer

import "slices"

// archonTable says what becomes of each key of an Archon workflow.
func archonTable() []construct {
	const settings = "which agent and model play a role is for `roles` in config.yaml"
	return slices.Concat(
		taken("name", "description", "interactive", "tags", "requires", "worktree.enabled", "mutates_checkout"),
		deep("worktree", "nodes", "inputs"),
		near(settings, "provider", "model"),
		left(settings, "effort", "modelReasoningEffort", "thinking", "fallbackModel", "betas", "webSearchMode",
			"additionalDirectories"),
		left("permissions are yours to decide: nothing of them is imported", "sandbox", "container"),
		left("ours has `outputs` and `success_criterion` of a step for what must exist", "evidence_policy"),
		left("a conversation lasts for a run", "persist_sessions"),
		near("it becomes the answer of the step that calls this workflow", "returns", "outcome_field"),
		under("nodes[].", archonNodeTable(settings)...),
	)
}

// archonNodeTable has the keys of a node.
func archonNodeTable(settings string) []construct {
	const (
		tools   = "ours holds agents by a sandbox and `reads`, not by lists of tools: `roles.NAME.sandbox` is yours to set"
		session = "ours gives an agent nothing but its command: the agent's own settings have it"
	)
	return slices.Concat(
		deep("loop", "approval", "retry"),
		near(settings, "provider", "model"),
		left(settings, "effort", "thinking", "fallbackModel", "betas", "settingSources", "pi"),
		left("permissions are yours to decide: nothing of them is imported", "sandbox"),
		left("a conversation lasts for a run", "persist_session"),
		taken("id", "description", "depends_on", "when", "trigger_rule", "command", "prompt", "bash", "script", "runtime",
			"cancel", "include", "workflow", "input", "with", "context", "output_format", "idle_timeout", "timeout"),
		near("it becomes an answer's name", "output_type"),
		left("each run of ours begins with nothing done", "always_run"),
		left("ours limits a role or a run: `limits.roles.NAME.max_cost_usd`", "maxBudgetUsd"),
		left(tools, "allowed_tools", "denied_tools"),
		left(session, "hooks", "mcp", "skills", "agents"),
		near("it begins the step's prompt", "systemPrompt"),
		taken("retry.max_attempts"),
		left("ours waits by itself between launches", "retry.delay_ms", "retry.on_error"),
		under("loop.", taken("prompt", "command", "until", "max_iterations", "fresh_context", "until_bash", "until_field",
			"interactive", "gate_message", "signal_mode")...),
		left("the loop over several nodes is yours to make: a gate with a route back", "loop_group"),
		left("the step runs once: for a list see docs/tasks.md", "fan_out"),
		left("each run of ours works where its workflow says", "isolation"),
		left("a script's packages are its machine's matter", "deps"),
		under("approval.", taken("message", "capture_response", "on_reject", "decisions")...),
	)
}
