package shells

import (
	"path"
	"slices"
	"strings"
)

// tools are the programs that criteria and gates name often.
func tools() []tool {
	npm := []string{"package.json", ".npmrc"} // below: the packages of a workspace
	return []tool{
		{names: []string{"make", "gmake", "bmake"}, files: []string{"Makefile", "makefile", "GNUmakefile"},
			file: []string{"-f", "--file", "--makefile"}, dir: []string{"-C", "--directory"}},
		{names: []string{"just"}, files: []string{"justfile", "Justfile", ".justfile"},
			file: []string{"-f", "--justfile"}, dir: []string{"-d", "--working-directory"}},
		{names: []string{"task", "go-task"},
			files: []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml",
				"Taskfile.dist.yaml"}, below: true, file: []string{"-t", "--taskfile"}, dir: []string{"-d", "--dir"}},
		{names: []string{"npm"}, files: npm, below: true, dir: []string{"--prefix", "-C"}, run: []string{"exec", "x"},
			locks: []string{"package-lock.json", "npm-shrinkwrap.json"}},
		{names: []string{"npx"}, files: npm, run: []string{""}},
		{names: []string{"pnpm", "pnpx"}, files: append(npm, ".pnpmfile.cjs", ".pnpmfile.mjs", "pnpm-workspace.yaml"),
			below: true, dir: []string{"--dir", "-C"}, run: []string{"exec", "dlx"}, locks: []string{"pnpm-lock.yaml"}},
		{names: []string{"yarn"}, below: true,
			files: append(npm, ".yarnrc", ".yarnrc.yml", ".yarn/releases/**", ".yarn/plugins/**", ".pnp.cjs", ".pnp.loader.mjs"),
			dir:   []string{"--cwd"}, run: []string{"exec"}, locks: []string{"yarn.lock"}},
		{names: []string{"bun", "bunx"}, files: append(npm, "bunfig.toml"), below: true, dir: []string{"--cwd"},
			run: []string{"x"}, paths: []string{"run", ""}, locks: []string{"bun.lock", "bun.lockb"}},
		{names: []string{"deno"}, files: []string{"deno.json", "deno.jsonc", "package.json"}, below: true,
			file: []string{"-c", "--config"}, paths: []string{"run", ""}},
		{names: []string{"pixi"}, files: []string{"pixi.toml", "pyproject.toml"}, file: []string{"--manifest-path"},
			run: []string{"run"}},
		{names: []string{"mise"}, files: []string{"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml",
			"mise/config.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".tool-versions",
			"mise-tasks/**", ".mise-tasks/**", "mise/tasks/**", ".mise/tasks/**", ".config/mise/tasks/**"},
			dir: []string{"-C", "--cd"}, scripts: true},
		{names: []string{"rake"}, files: []string{"Rakefile", "rakefile", "Rakefile.rb", "rakelib/**"},
			file: []string{"-f", "--rakefile"}},
		{names: []string{"bundle"}, files: []string{"Gemfile", ".bundle/config"}, run: []string{"exec"},
			locks: []string{"Gemfile.lock"}},
		{names: []string{"rspec"}, files: []string{".rspec"}, file: []string{"-r", "--require", "-O", "--options"}},
		{names: []string{"composer"}, files: []string{"composer.json"}, dir: []string{"-d", "--working-dir"},
			locks: []string{"composer.lock"}},
		{names: []string{"phpunit", "paratest", "pest"}, files: []string{"phpunit.xml", "phpunit.xml.dist"},
			file: []string{"-c", "--configuration"}},
		{names: []string{"prove"}, files: []string{".proverc"}},
		{names: []string{"docker", "podman", "docker-compose"}, files: []string{"Dockerfile", ".dockerignore", "compose.yaml",
			"compose.yml", "compose.override.yaml", ".env", "docker-compose.yml",
			"docker-compose.yaml", "docker-compose.override.yml"},
			file: []string{"-f", "--file"}, scripts: true},
		{names: []string{"git"}, run: []string{"run"}}, // bisect
		{names: []string{"awk", "gawk", "mawk", "sed"}, file: []string{"-f", "--file"}},
		{names: []string{"jq", "yq"}, file: []string{"-f", "--from-file", "-L"}},
		{names: []string{"nix", "nix-shell"}, files: []string{"flake.nix", "flake.lock", "shell.nix", "default.nix"},
			run: []string{"-c", "--command", "--run"}},
		{names: []string{"mage"}, files: []string{"magefile.go", "magefiles/**"}, dir: []string{"-d"}},
		{names: []string{"invoke", "inv"}, files: []string{"tasks.py", "tasks/**", "invoke.yaml"}},
		{names: []string{"doit"}, files: []string{"dodo.py"}, file: []string{"-f", "--file"}},
		{names: []string{"gulp"}, files: scripts("gulpfile"), file: []string{"-f", "--gulpfile"}},
		{names: []string{"grunt"}, files: append(scripts("Gruntfile"), "gruntfile.js"), file: []string{"--gruntfile"}},
		{names: []string{"earthly"}, files: []string{"Earthfile"}, below: true},
		{names: []string{"dune"}, files: []string{"dune", "dune-project"}, below: true},
		{names: []string{"conftest"}, files: []string{"policy/**", "conftest.toml"}, file: []string{"-p", "--policy"}},
		{names: []string{"pre-commit"}, files: []string{".pre-commit-config.yaml"}, file: []string{"-c", "--config"}},
	}
}

// pythonTools are those of Python.
func pythonTools() []tool {
	return []tool{
		{names: []string{"pytest", "py.test"}, below: true, file: []string{"-c"},
			files: []string{"pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "pyproject.toml", "tox.ini", "setup.cfg",
				"conftest.py"}},
		{names: []string{"tox"}, files: []string{"tox.ini", "tox.toml", "pyproject.toml", "setup.cfg"},
			file: []string{"-c", "--conf"}, scripts: true},
		{names: []string{"nox"}, files: []string{"noxfile.py"}, file: []string{"-f", "--noxfile"}},
		{names: []string{"uv"}, files: []string{"pyproject.toml", "uv.toml"},
			dir: []string{"--directory", "--project"}, file: []string{"-r", "--requirements"}, run: []string{"run"},
			locks: []string{"uv.lock"}},
		{names: []string{"pip", "pip3"}, files: []string{"pyproject.toml", "setup.py", "setup.cfg"},
			file: []string{"-r", "--requirement", "-c", "--constraint"}},
		{names: []string{"uvx"}, files: []string{"uv.toml"}, run: []string{""}},
		{names: []string{"pipx"}, run: []string{"run"}},
		{names: []string{"poetry", "pdm", "hatch", "rye"}, files: []string{"pyproject.toml"},
			dir: []string{"-C", "--directory"}, run: []string{"run"}, locks: []string{"poetry.lock", "pdm.lock"}},
		{names: []string{"pipenv"}, files: []string{"Pipfile"}, run: []string{"run"}, locks: []string{"Pipfile.lock"}},
		{names: []string{"behave"}, files: []string{"behave.ini", ".behaverc", "setup.cfg", "tox.ini", "pyproject.toml"}},
	}
}

// builders are the build tools of compiled languages. They build and test every part of a project, by that part's
// files.
func builders() []tool {
	return []tool{
		{names: []string{"go", "gotestsum", "ginkgo"}, files: []string{"go.mod", "go.work", "vendor/modules.txt"},
			below: true, file: []string{"-modfile", "-overlay", "-exec", "-toolexec", "-vettool"}, dir: []string{"-C"},
			paths: []string{"run"}},
		{names: []string{"cargo", "rustc"}, files: []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config",
			".config/nextest.toml", "rust-toolchain.toml", "rust-toolchain", "clippy.toml", ".clippy.toml",
			"rustfmt.toml", ".rustfmt.toml", "deny.toml", "Makefile.toml", "xtask/**"},
			below: true, file: []string{"--manifest-path", "--config"}, dir: []string{"-C"},
			paths: []string{"run"}, named: []string{"-p", "--package", "--bin", "--example"}},
		{names: []string{"gradle", "gradlew"}, below: true, dir: []string{"-p", "--project-dir"},
			file: []string{"-I", "--init-script", "-b", "--build-file", "-c", "--settings-file"},
			files: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
				"gradle.properties", "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar",
				"buildSrc/build.gradle", "buildSrc/build.gradle.kts", "buildSrc/src/**", "*.gradle", "*.gradle.kts",
				"*.versions.toml"}},
		{names: []string{"mvn", "mvnw"}, files: []string{"pom.xml", ".mvn/**"}, below: true,
			file: []string{"-f", "--file", "-s", "--settings"}},
		{names: []string{"java"}, file: []string{"-jar", "-cp", "-classpath", "--class-path"}, paths: []string{""}},
		{names: []string{"sbt"}, files: []string{"*.sbt", "project/**"}, below: true},
		{names: []string{"lein"}, files: []string{"project.clj", "profiles.clj"}},
		{names: []string{"clojure", "clj"}, files: []string{"deps.edn"}, scripts: true},
		{names: []string{"mix"}, files: []string{"mix.exs", "config/config.exs", "config/test.exs", ".credo.exs",
			".formatter.exs", ".dialyzer_ignore.exs"},
			below: true, paths: []string{"run"}},
		{names: []string{"dotnet", "msbuild"}, below: true, paths: []string{"run"},
			files: []string{"*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.slnx", "*.slnf", "*.props", "*.targets", "*.rsp",
				"*.runsettings", "*.ruleset", ".editorconfig", ".globalconfig",
				"global.json", "nuget.config", "NuGet.Config", "NuGet.config"}},
		{names: []string{"swift"}, files: []string{"Package.swift"}, paths: []string{"run", ""}},
		{names: []string{"dart", "flutter"}, files: []string{"pubspec.yaml", "dart_test.yaml", "analysis_options.yaml"},
			below: true, paths: []string{"run", ""}},
		{names: []string{"zig"}, files: []string{"build.zig", "build.zig.zon"}, paths: []string{"run"}},
		{names: []string{"stack", "cabal"}, files: []string{"stack.yaml", "package.yaml", "cabal.project", "*.cabal"},
			below: true},
		{names: []string{"cmake", "ctest"}, files: []string{"CMakeLists.txt", "CMakePresets.json", "*.cmake"},
			below: true},
		{names: []string{"meson"}, files: []string{"meson.build"}, below: true},
		{names: []string{"rebar3"}, files: []string{"rebar.config", "rebar.config.script"}},
		{names: []string{"forge"}, files: []string{"foundry.toml", "remappings.txt"}},
		{names: []string{"busted"}, files: []string{".busted"}},
		{names: []string{"scons"}, files: []string{"SConstruct"}, file: []string{"-f"}},
		{names: []string{"ninja"}, files: []string{"build.ninja"}, file: []string{"-f"}, dir: []string{"-C"}},
		{names: []string{"ant"}, files: []string{"build.xml"}, file: []string{"-f", "-file", "-buildfile"}},
		{names: []string{"bazel", "bazelisk"}, files: []string{".bazelrc", ".bazelversion", ".bazeliskrc", "MODULE.bazel",
			"WORKSPACE", "WORKSPACE.bazel", "BUILD", "BUILD.bazel", "*.bzl"}, below: true},
	}
}

// linters judge sources by their settings.
func linters() []tool {
	return []tool{
		{names: []string{"golangci-lint"}, below: true,
			files: append(named(".golangci", "yml", "yaml", "toml", "json"), "go.mod", "go.work"),
			file:  []string{"-c", "--config"}},
		{names: []string{"ruff"}, files: []string{"ruff.toml", ".ruff.toml", "pyproject.toml"}, below: true,
			file: []string{"--config"}},
		{names: []string{"mypy", "dmypy"}, files: []string{"mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"},
			file: []string{"--config-file"}},
		{names: []string{"pyright", "basedpyright"}, files: []string{"pyrightconfig.json", "pyproject.toml",
			".basedpyright/baseline.json"}, file: []string{"-p", "--project"}},
		{names: []string{"pylint"}, file: []string{"--rcfile"},
			files: []string{".pylintrc", "pylintrc", ".pylintrc.toml", "pylintrc.toml", "pyproject.toml", "setup.cfg"}},
		{names: []string{"flake8"}, files: []string{".flake8", "setup.cfg", "tox.ini"}, file: []string{"--config"}},
		{names: []string{"black", "isort"}, files: []string{"pyproject.toml", ".isort.cfg", "setup.cfg"}, below: true,
			file: []string{"--config", "--settings"}},
		{names: []string{"coverage"}, files: []string{".coveragerc", "pyproject.toml", "setup.cfg", "tox.ini"},
			file: []string{"--rcfile"}, run: []string{"run"}, as: "python"},
		{names: []string{"rubocop"}, files: []string{".rubocop.yml", ".rubocop_todo.yml"}, below: true,
			file: []string{"-c", "--config"}},
		{names: []string{"shellcheck"}, files: []string{".shellcheckrc", "shellcheckrc"}, below: true,
			file: []string{"--rcfile"}},
		{names: []string{"clang-tidy", "clang-format"}, files: []string{".clang-tidy", ".clang-format",
			".clang-format-ignore"}, below: true},
		{names: []string{"rustfmt"}, files: []string{"rustfmt.toml", ".rustfmt.toml"}, below: true},
		{names: []string{"staticcheck"}, files: []string{"staticcheck.conf", "go.mod", "go.work"}, below: true},
		{names: []string{"phpstan"}, files: []string{"phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon",
			"phpstan-baseline.neon", "phpstan-baseline.php"}, file: []string{"-c", "--configuration"}},
		{names: []string{"psalm"}, files: []string{"psalm.xml", "psalm.xml.dist", "psalm-baseline.xml"},
			file: []string{"-c", "--config"}},
		{names: []string{"phpcs"}, files: []string{"phpcs.xml", ".phpcs.xml", "phpcs.xml.dist", ".phpcs.xml.dist"}},
		{names: []string{"luacheck"}, files: []string{".luacheckrc"}, file: []string{"--config"}},
		{names: []string{"yamllint"}, files: []string{".yamllint", ".yamllint.yaml", ".yamllint.yml"},
			file: []string{"-c", "--config-file"}},
		{names: []string{"bandit"}, files: []string{".bandit", "pyproject.toml", "setup.cfg", "tox.ini"},
			file: []string{"-c", "--configfile", "--ini", "-b", "--baseline"}},
		{names: []string{"sqlfluff"}, below: true, file: []string{"--config"},
			files: []string{".sqlfluff", ".sqlfluffignore", "pyproject.toml", "setup.cfg", "tox.ini"}},
		{names: []string{"lint-imports"}, files: []string{".importlinter", "pyproject.toml", "setup.cfg"},
			file: []string{"--config"}},
		{names: []string{"tflint"}, files: []string{".tflint.hcl"}, below: true, file: []string{"-c", "--config"}},
		{names: []string{"ansible-lint"}, files: []string{".ansible-lint", ".ansible-lint.yml", ".config/ansible-lint.yml",
			".ansible-lint-ignore", ".config/ansible-lint-ignore.txt"}, file: []string{"-c", "--config-file", "-i"}},
		{names: []string{"buf"}, files: []string{"buf.yaml", "buf.work.yaml", "buf.gen.yaml"}, below: true,
			file: []string{"--config"}},
		{names: []string{"hadolint"}, files: []string{".hadolint.yaml", ".hadolint.yml"}, file: []string{"-c", "--config"}},
		{names: []string{"actionlint"}, files: []string{".github/actionlint.yaml", ".github/actionlint.yml"},
			file: []string{"-config-file"}},
		{names: []string{"swiftlint"}, files: []string{".swiftlint.yml"}, below: true, file: []string{"--config"}},
		{names: []string{"ktlint", "shfmt", "editorconfig-checker", "ec"}, files: []string{".editorconfig", ".ecrc",
			".editorconfig-checker.json"}, below: true},
		{names: []string{"typos"}, below: true, file: []string{"-c", "--config"},
			files: []string{"typos.toml", "_typos.toml", ".typos.toml", "Cargo.toml", "pyproject.toml"}},
		{names: []string{"codespell"}, files: []string{".codespellrc", "setup.cfg", "pyproject.toml"},
			file: []string{"-I", "--ignore-words", "-x", "--exclude-file", "--config", "--toml"}},
		{names: []string{"vale"}, files: []string{".vale.ini", "_vale.ini", "vale.ini"}, file: []string{"--config"}},
		{names: []string{"lychee"}, files: []string{"lychee.toml", ".lycheeignore"}, file: []string{"-c", "--config"}},
		{names: []string{"dprint"}, files: named("dprint", "json", "jsonc"), below: true, file: []string{"-c", "--config"}},
	}
}

// scanners look for secrets and weaknesses. Their files can hide a finding.
func scanners() []tool {
	return []tool{
		{names: []string{"gitleaks"}, files: []string{".gitleaks.toml", ".gitleaksignore"},
			file: []string{"-c", "--config", "-b", "--baseline-path", "-i", "--gitleaks-ignore-path"}},
		{names: []string{"trufflehog"}, file: []string{"--config", "-x", "--exclude-paths", "-i", "--include-paths"}},
		{names: []string{"detect-secrets", "detect-secrets-hook"}, file: []string{"--baseline"}},
		{names: []string{"trivy"}, files: []string{"trivy.yaml", "trivy-secret.yaml", ".trivyignore", ".trivyignore.yaml"},
			file: []string{"-c", "--config", "--ignorefile", "--secret-config"}},
		{names: []string{"semgrep"}, files: []string{".semgrepignore", ".semgrep.yml", ".semgrep/**"}, below: true,
			file: []string{"-c", "-f", "--config"}},
		{names: []string{"osv-scanner"}, files: []string{"osv-scanner.toml"}, below: true, file: []string{"--config"}},
		{names: []string{"checkov"}, files: named(".checkov", "yaml", "yml"), file: []string{"--config-file", "--baseline"}},
		{names: []string{"snyk"}, files: []string{".snyk"}, file: []string{"--policy-path"}},
		{names: []string{"grype"}, files: []string{".grype.yaml", ".grype/config.yaml"}, file: []string{"-c", "--config"}},
	}
}

// agentPrograms are agents without a format of ours, with the settings and instructions that their documentation names.
func agentPrograms() []tool {
	return []tool{
		{names: []string{"aider"}, files: []string{".aider.conf.yml", ".aider.model.settings.yml",
			".aider.model.metadata.json", ".env"}, file: []string{"-c", "--config", "--read"}},
		{names: []string{"goose"}, files: []string{".goosehints", ".goosehints.local"}, below: true,
			file: []string{"-i", "--instructions", "--recipe"}},
		{names: []string{"cursor-agent"}, files: []string{".cursor/**", ".cursorrules"}, below: true},
		{names: []string{"copilot"}, files: []string{".github/copilot-instructions.md", ".github/instructions/**",
			".github/agents/**", ".github/skills/**", ".github/hooks/**", ".copilot/**"}},
		{names: []string{"crush"}, files: []string{"crush.json", ".crush.json", "crush.md", "CRUSH.md", "CRUSH.local.md",
			".cursorrules", ".cursor/rules/**", ".github/copilot-instructions.md"}},
	}
}

// webTools are those of JavaScript and TypeScript.
func webTools() []tool {
	babel := slices.Concat(scripts("babel.config"), named("babel.config", "json"), []string{".babelrc"},
		named(".babelrc", "js", "cjs", "json"))
	return []tool{
		{names: []string{"turbo"}, files: []string{"turbo.json", "turbo.jsonc", "package.json", ".npmrc"}, below: true},
		{names: []string{"nx"}, files: []string{"nx.json", "project.json", "package.json", ".npmrc"}, below: true},
		{names: []string{"lerna"}, files: []string{"lerna.json", "package.json", ".npmrc"}, below: true},
		{names: []string{"ng"}, files: []string{"angular.json", "package.json"}},
		{names: []string{"tsc", "vue-tsc"}, files: []string{"tsconfig.json"}, below: true, file: []string{"-p", "--project"}},
		{names: []string{"biome"}, files: named("biome", "json", "jsonc"), below: true, file: []string{"--config-path"}},
		{names: []string{"oxlint"}, files: []string{".oxlintrc.json"}, below: true, file: []string{"-c", "--config"}},
		{names: []string{"prettier"}, files: slices.Concat([]string{"package.json", ".prettierrc", ".prettierignore",
			".editorconfig"}, named(".prettierrc", "json", "yml", "yaml", "toml"), scripts(".prettierrc"),
			scripts("prettier.config")), below: true, file: []string{"--config", "--ignore-path"}},
		{names: []string{"stylelint"}, files: slices.Concat([]string{"package.json", ".stylelintrc", ".stylelintignore"},
			named(".stylelintrc", "json", "yml", "yaml"), scripts(".stylelintrc"), scripts("stylelint.config")), below: true,
			file: []string{"--config"}},
		{names: []string{"mocha"}, files: slices.Concat([]string{"package.json"},
			named(".mocharc", "js", "cjs", "mjs", "json", "jsonc", "yml", "yaml")),
			file: []string{"--config", "-r", "--require", "--file", "--package"}},
		{names: []string{"nyc", "c8"}, files: slices.Concat([]string{"package.json", ".nycrc", ".c8rc", ".c8rc.json"},
			named(".nycrc", "json", "yml", "yaml"), scripts("nyc.config")), run: []string{""}},
		{names: []string{"ava"}, files: append(scripts("ava.config"), "package.json"), file: []string{"--config"}},
		{names: []string{"tap"}, files: []string{"package.json", ".taprc"}},
		{names: []string{"karma"}, files: scripts("karma.conf")},
		{names: []string{"jasmine"}, files: slices.Concat(named("spec/support/jasmine", "js", "mjs", "json"),
			named("jasmine", "js", "mjs", "json")), file: []string{"--config"}},
		{names: []string{"playwright"}, files: scripts("playwright.config"), file: []string{"-c", "--config"}},
		{names: []string{"cypress"}, files: scripts("cypress.config"), file: []string{"-C", "--config-file"}},
		{names: []string{"jest"}, files: slices.Concat([]string{"package.json", "jest.config.json"}, scripts("jest.config"),
			babel), below: true, file: []string{"-c", "--config"}},
		{names: []string{"vitest", "vite"}, files: slices.Concat(scripts("vitest.config"), scripts("vite.config"),
			scripts("vitest.workspace"), []string{"vitest.workspace.json"}), below: true, file: []string{"-c", "--config"}},
		{names: []string{"eslint"}, files: slices.Concat([]string{"package.json", ".eslintrc", ".eslintignore",
			"eslint-suppressions.json"}, scripts("eslint.config"), named(".eslintrc", "js", "cjs", "json", "yml", "yaml")),
			below: true, file: []string{"-c", "--config"}},
		{names: []string{"markdownlint", "markdownlint-cli2"}, files: slices.Concat([]string{".markdownlintignore"},
			named(".markdownlint", "json", "jsonc", "yml", "yaml", "cjs", "mjs"),
			named(".markdownlint-cli2", "jsonc", "yaml", "cjs", "mjs")), below: true, file: []string{"-c", "--config"}},
		{names: []string{"cspell"}, files: slices.Concat(named("cspell", "json", "yaml", "yml"), scripts("cspell.config"),
			named(".cspell", "json"), named("cspell.config", "json", "yaml", "yml")), below: true,
			file: []string{"-c", "--config"}},
		{names: []string{"knip"}, files: slices.Concat(named("knip", "json", "jsonc", "ts", "js"), []string{"package.json"}),
			file: []string{"-c", "--config"}},
		{names: []string{"commitlint"}, files: slices.Concat(scripts("commitlint.config"), []string{"package.json"},
			named(".commitlintrc", "json", "yaml", "yml", "js", "cjs")), file: []string{"-g", "--config"}},
		{names: []string{"spectral"}, files: named(".spectral", "yaml", "yml", "json", "js"),
			file: []string{"-r", "--ruleset"}},
	}
}

// readers are programs that run none of the files that their arguments name.
func readers() []string {
	return strings.Fields(`[ [[ alias ar b2sum basename bat break cat cc chgrp chmod chown cksum clang
		clang++ cmp column comm continue cp csplit curl cut date delta df diff dirname du echo egrep envsubst
		exit expand expr false fgrep file fold fmt g++ gcc getopts gh ghc gofmt gpg grep gunzip gzip hash head
		hexdump hostname id install javac join kill ld less let ln locale ls lsof md5sum mkdir mktemp mv nl nm
		objdump od openssl pandoc paste patch pgrep pkill printf protoc ps pwd read readlink realpath return rev
		rg rm rmdir rsync scp seq set sha1sum sha256sum sha512sum shift shuf size sleep sort split stat strings
		tac tail tar tee test touch tput tr tree true truncate tsort type ulimit umask uname unexpand uniq unset
		unxz unzip wait wc wget which who whoami xmllint xsltproc xxd xz xzcat yes zcat zip zstd`)
}

// isScript reports whether a file's name ends like a script's.
func isScript(name string) bool {
	return slices.Contains(strings.Fields(`.awk .bash .bats .cjs .clj .coffee .cr .cts .dart .el .exe .exp .exs .fish
		.groovy .hs .jar .jl .js .jsh .jsx .ksh .kts .lisp .lua .m4 .mjs .ml .mts .nim .nu .php .pl .ps1 .py .pyz
		.r .R .rb .rego .rkt .robot .sc .scala .scm .sh .sql .swift .tcl .ts .tsx .wasm .zig .zsh`), path.Ext(name))
}

// named returns the names of a tool's settings file, one for each format.
func named(base string, endings ...string) (out []string) {
	for _, e := range endings {
		out = append(out, base+"."+e)
	}
	return out
}

// scripts is named for settings that are JavaScript or TypeScript.
func scripts(base string) []string { return named(base, "js", "mjs", "cjs", "ts", "mts", "cts") }
