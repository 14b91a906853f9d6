package importer

import "slices"

// archonTable says what becomes of each key of an Archon workflow.
func archonTable() []construct {
	const (
		settings = "which agent and model play a role is for `roles` in config.yaml"
		tools    = "ours holds agents by a sandbox and `reads`, not by lists of tools: `roles.NAME.sandbox` is yours to set"
		session  = "ours gives an agent nothing but its command: the agent's own settings have it"
	)
	return slices.Concat(
		taken("name", "description", "interactive", "tags", "requires", "worktree.enabled", "mutates_checkout"),
		deep("worktree", "nodes", "nodes[].loop", "nodes[].approval", "nodes[].retry", "inputs"),
		near(settings, "provider", "model", "nodes[].provider", "nodes[].model"),
		left(settings, "effort", "modelReasoningEffort", "thinking", "fallbackModel", "betas", "webSearchMode",
			"additionalDirectories", "nodes[].effort", "nodes[].thinking", "nodes[].fallbackModel", "nodes[].betas",
			"nodes[].settingSources", "nodes[].pi"),
		left("permissions are yours to decide: nothing of them is imported", "sandbox", "nodes[].sandbox", "container"),
		left("ours has `outputs` and `success_criterion` of a step for what must exist", "evidence_policy"),
		left("a conversation lasts for a run", "persist_sessions", "nodes[].persist_session"),
		near("it becomes the answer of the step that calls this workflow", "returns", "outcome_field"),
		taken("nodes[].id", "nodes[].description", "nodes[].depends_on", "nodes[].when", "nodes[].trigger_rule",
			"nodes[].command", "nodes[].prompt", "nodes[].bash", "nodes[].script", "nodes[].runtime", "nodes[].cancel",
			"nodes[].include", "nodes[].workflow", "nodes[].input", "nodes[].with", "nodes[].context",
			"nodes[].output_format", "nodes[].idle_timeout", "nodes[].timeout"),
		near("it becomes an answer's name", "nodes[].output_type"),
		left("each run of ours begins with nothing done", "nodes[].always_run"),
		left("ours limits a role or a run: `limits.roles.NAME.max_cost_usd`", "nodes[].maxBudgetUsd"),
		left(tools, "nodes[].allowed_tools", "nodes[].denied_tools"),
		left(session, "nodes[].hooks", "nodes[].mcp", "nodes[].skills", "nodes[].agents"),
		near("it begins the step's prompt", "nodes[].systemPrompt"),
		taken("nodes[].retry.max_attempts"),
		left("ours waits by itself between launches", "nodes[].retry.delay_ms", "nodes[].retry.on_error"),
		taken("nodes[].loop.prompt", "nodes[].loop.command", "nodes[].loop.until", "nodes[].loop.max_iterations",
			"nodes[].loop.fresh_context", "nodes[].loop.until_bash", "nodes[].loop.until_field",
			"nodes[].loop.interactive", "nodes[].loop.gate_message", "nodes[].loop.signal_mode"),
		left("the loop over several nodes is yours to make: a gate with a route back", "nodes[].loop_group"),
		left("the step runs once: for a list see docs/tasks.md", "nodes[].fan_out"),
		left("each run of ours works where its workflow says", "nodes[].isolation"),
		left("a script's packages are its machine's matter", "nodes[].deps"),
		taken("nodes[].approval.message", "nodes[].approval.capture_response", "nodes[].approval.on_reject",
			"nodes[].approval.decisions"),
	)
}
