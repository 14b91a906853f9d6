package importer

import "slices"

// conductorTable says what becomes of each key of a conductor workflow.
func conductorTable() []construct {
	const (
		settings    = "the role has the model's name: which agent and model play it is for `roles` in config.yaml"
		own         = "each agent's own settings have it"
		permissions = "permissions are yours to decide: nothing of them is imported"
	)
	out := slices.Concat(
		deep("workflow", "workflow.input", "workflow.runtime", "workflow.limits", "workflow.context", "agents", "parallel",
			"for_each"),
		taken("workflow.name", "workflow.description", "workflow.entry_point", "workflow.limits.max_iterations",
			"workflow.limits.timeout_seconds", "workflow.instructions"),
		left("specs are versioned with the repo", "workflow.version", "workflow.metadata"),
		near(settings, "workflow.runtime.provider", "workflow.runtime.default_model"),
		left(own, "workflow.runtime.temperature", "workflow.runtime.max_tokens", "workflow.runtime.timeout",
			"workflow.runtime.max_agent_iterations", "workflow.runtime.max_session_seconds",
			"workflow.runtime.default_reasoning_effort",
			"workflow.runtime.skills", "workflow.runtime.plugins", "workflow.runtime.mcp_servers",
			"workflow.runtime.skill_injection",
			"workflow.runtime.skill_discovery", "workflow.runtime.plugin_sources", "workflow.runtime.tool_output",
			"workflow.runtime.default_context_tier", "workflow.runtime.checkpoint"),
		near("a prompt of ours has what it names, and nothing else", "workflow.context.mode"),
		left("a prompt of ours has what it names, and nothing else", "workflow.context.max_tokens",
			"workflow.context.trim_strategy"),
		left("`sluice stats` counts what runs cost", "workflow.cost"),
		left("`hooks.after_run` of ours is a command", "workflow.hooks"),
		left(permissions, "tools"),
		left("the answers of the steps are the result", "output"),
	)
	for _, p := range []string{"agents[].", "for_each[].agent."} {
		out = append(out, conductorAgentTable(p, settings, own, permissions)...)
	}
	return slices.Concat(out,
		taken("parallel[].name", "parallel[].description", "parallel[].agents", "parallel[].failure_mode",
			"parallel[].routes[].to",
			"parallel[].routes[].when", "for_each[].name", "for_each[].type", "for_each[].description", "for_each[].source",
			"for_each[].as", "for_each[].max_concurrent", "for_each[].routes[].to", "for_each[].routes[].when"),
		deep("parallel[].routes", "for_each[].routes", "for_each[].agent"),
		near("a task that fails is tried three times; the list goes on without it", "for_each[].failure_mode"),
	)
}

// conductorAgentTable has the keys of an agent, whose paths begin with p.
func conductorAgentTable(p, settings, own, permissions string) []construct {
	with := func(keys ...string) []string { return below(p, keys) }
	return slices.Concat(
		taken(with("name", "type", "description", "prompt", "system_prompt", "output", "routes[].to", "routes[].when",
			"command",
			"args", "env", "timeout", "duration", "reason", "status", "value", "values", "workflow", "input_mapping", "input",
			"options", "source", "questions", "session_key", "timeout_seconds", "max_session_seconds", "retry.max_attempts",
			"validator.criteria", "validator.max_retries")...),
		deep(with("routes", "retry", "validator")...),
		near(settings, with("model", "provider")...),
		near("the role validator", with("validator.model")...),
		left("the answers of the steps are the result", with("output_template", "routes[].output")...),
		left(permissions, with("tools", "sandbox")...),
		left(own, with("skills", "plugins", "reasoning", "reasoning.effort", "max_agent_iterations", "context_tier",
			"mcp_servers")...),
		left("ours waits by itself between launches", with("retry.backoff", "retry.delay_seconds", "retry.retry_on")...),
		left("a person asks at a gate, or with `sluice takeover`", with("dialog")...),
		left("ours works where its workflow says", with("working_dir")...),
		left("ours gives a command no input", with("stdin")...),
		left("the person passes or does not", with("allow_back", "allow_skip", "allow_skip_all", "allow_abort")...),
		left("it is a text, or JSON", with("output_type")...),
		left("ours runs workflows within one another at most 4 deep", with("max_depth")...),
	)
}
