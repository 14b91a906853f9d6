package importer

import "slices"

// taktTable says what becomes of each key of a takt workflow. Steps, those side by side, and
// fragments have the same keys.
func taktTable() []construct {
	const judge = "a person is asked where theirs asks an agent whether the loop gets anywhere"
	step := taktStepTable()
	return slices.Concat(
		taken("name", "description", "initial_step", "initial_movement", "capabilities", "facet_pools", "schemas", "personas",
			"policies", "knowledge", "instructions", "report_formats", "subworkflow.callable", "subworkflow.visibility",
			"subworkflow.returns", "subworkflow.params", "all_steps.rules[].ref", "all_steps.rules[].position"),
		deep("subworkflow", "all_steps", "all_steps.rules", "loop_monitors"),
		near("ours counts each attempt of a step, also those side by side", "max_steps", "max_movements", "max_iterations"),
		near("it is the number of ways back after which a person is asked", "loop_monitors[].cycle",
			"loop_monitors[].threshold"),
		near(judge, "loop_monitors[].judge"),
		left("ours counts the ways back of each gate by itself", "loop_monitors[].ignore_steps"),
		left("each agent's own settings have it", "provider", "model", "provider_options", "workflow_config", "piece_config",
			"interactive_mode", "answer_agent"),
		under("steps[].", step...),
		under("steps[].parallel[].", step...),
		under("steps[].parallel.fixed[].", step...),
		under("steps[].parallel.pool[].", step...),
		deep("steps", "movements", "steps[].parallel", "steps[].parallel.fixed", "steps[].parallel.pool"),
		taken("steps[].parallel.selection", "steps[].concurrency"),
	)
}

// taktStepTable has the keys of a step.
func taktStepTable() []construct {
	const settings = "which agent and model play a role is for `roles` in config.yaml; the role is the persona"
	return slices.Concat(
		taken("name", "description", "persona", "policy", "knowledge", "instruction", "edit", "capabilities", "kind", "call",
			"args", "uses", "with", "pass_previous_response", "session", "session_key", "persona_name", "structured_output",
			"output_contracts.report[].name", "output_contracts.report[].format", "output_contracts.report[].order",
			"rules[].condition", "rules[].next", "rules[].return", "rules[].appendix", "rules[].requires_user_input",
			"rules[].interactive_only", "rules.self[].condition", "rules.self[].next", "rules.self[].return",
			"rules.self[].appendix", "rules.parallel", "quality_gates"),
		deep("output_contracts", "output_contracts.report", "rules", "rules.self"),
		near("a report is part of the step's own answer, which names the outcome", "output_contracts.report[].use_judge"),
		near(settings, "tags", "provider", "model"),
		near("the agent itself reads the candidates that apply, from a list", "dynamic_facets"),
		near("one agent does all parts: it may use agents of its own", "team_leader"),
		near("an answer that does not fit its schema is asked for again, twice", "completion_retry"),
		left("nobody watches an agent at work: a reviewer judges its work at a gate", "companion"),
		left("permissions are yours to decide: nothing of them is imported", "required_permission_mode", "permission_mode",
			"allowed_tools", "provider_options", "mcp_servers", "allow_git_commit"),
		left("ours does not wait before a step", "delay_before_ms"),
		left("the settings name another agent for an attempt that comes back, if you like", "promotion"),
		left("takt itself does this step; here a person does", "mode", "effects", "system_inputs"),
		left("for a list of tasks see docs/tasks.md", "arpeggio"),
	)
}
