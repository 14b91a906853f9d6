package importer

import "slices"

// conductorTable says what becomes of each key of a conductor workflow.
func conductorTable() []construct {
	agent := conductorAgentTable()
	return slices.Concat(
		deep("workflow", "agents", "parallel", "for_each"),
		under("workflow.", conductorHeadTable()...),
		left(conductorPermissions, "tools"),
		left("the answers of the steps are the result", "output"),
		under("agents[].", agent...),
		under("parallel[].", taken("name", "description", "agents", "failure_mode", "routes[].to", "routes[].when")...),
		under("for_each[].", taken("name", "type", "description", "source", "as", "max_concurrent", "routes[].to",
			"routes[].when")...),
		deep("parallel[].routes", "for_each[].routes", "for_each[].agent"),
		near("a task that fails is tried three times; the list goes on without it", "for_each[].failure_mode"),
		under("for_each[].agent.", agent...),
	)
}

const (
	conductorSettings    = "the role has the model's name: which agent and model play it is for `roles` in config.yaml"
	conductorOwn         = "each agent's own settings have it"
	conductorPermissions = "permissions are yours to decide: nothing of them is imported"
)

// conductorHeadTable has the keys of `workflow`.
func conductorHeadTable() []construct {
	const context = "a prompt of ours has what it names, and nothing else"
	return slices.Concat(
		deep("input", "runtime", "limits", "context"),
		taken("name", "description", "entry_point", "limits.max_iterations", "limits.timeout_seconds", "instructions"),
		left("specs are versioned with the repo", "version", "metadata"),
		near(conductorSettings, "runtime.provider", "runtime.default_model"),
		under("runtime.", left(conductorOwn, "temperature", "max_tokens", "timeout", "max_agent_iterations",
			"max_session_seconds", "default_reasoning_effort", "skills", "plugins", "mcp_servers", "skill_injection",
			"skill_discovery", "plugin_sources", "tool_output", "default_context_tier", "checkpoint")...),
		near(context, "context.mode"),
		left(context, "context.max_tokens", "context.trim_strategy"),
		left("`sluice stats` counts what runs cost", "cost"),
		left("`hooks.after_run` of ours is a command", "hooks"),
	)
}

// conductorAgentTable has the keys of an agent.
func conductorAgentTable() []construct {
	return slices.Concat(
		taken("name", "type", "description", "prompt", "system_prompt", "output", "routes[].to", "routes[].when", "command",
			"args", "env", "timeout", "duration", "reason", "status", "value", "values", "workflow", "input_mapping", "input",
			"options", "source", "questions", "session_key", "timeout_seconds", "max_session_seconds", "retry.max_attempts",
			"validator.criteria", "validator.max_retries"),
		deep("routes", "retry", "validator"),
		near(conductorSettings, "model", "provider"),
		near("the role validator", "validator.model"),
		left("the answers of the steps are the result", "output_template", "routes[].output"),
		left(conductorPermissions, "tools", "sandbox"),
		left(conductorOwn, "skills", "plugins", "reasoning", "reasoning.effort", "max_agent_iterations", "context_tier",
			"mcp_servers"),
		left("ours waits by itself between launches", "retry.backoff", "retry.delay_seconds", "retry.retry_on"),
		left("a person asks at a gate, or with `sluice takeover`", "dialog"),
		left("ours works where its workflow says", "working_dir"),
		left("ours gives a command no input", "stdin"),
		left("the person passes or does not", "allow_back", "allow_skip", "allow_skip_all", "allow_abort"),
		left("it is a text, or JSON", "output_type"),
		left("ours runs workflows within one another at most 4 deep", "max_depth"),
	)
}
