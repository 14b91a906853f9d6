package shells

import (
	"slices"
	"strings"
)

// tool is a well-known program that goes by a file of the repo, and which.
type tool struct {
	names []string
	files []string // in the folder that it runs in; * in a name is any text
	below bool     // it finds them in the folders below by itself too
	file  []string // options before another such file
	dir   []string // options before another folder
	run   []string // subcommands behind which a command follows; "" = at once
	as    string   // the program that reads what follows those
	locks []string // files that say from where it installs what others name
	paths []string // subcommands behind which a file or folder is run
}

// tools are those that criteria and gates name often. What their files start in turn is not looked for.
func tools() []tool {
	npm := []string{"package.json", ".npmrc"} // below: the packages of a workspace
	return []tool{
		{names: []string{"make", "gmake", "bmake"}, files: []string{"Makefile", "makefile", "GNUmakefile"},
			file: []string{"-f", "--file", "--makefile"}, dir: []string{"-C", "--directory"}},
		{names: []string{"just"}, files: []string{"justfile", "Justfile", ".justfile"},
			file: []string{"-f", "--justfile"}, dir: []string{"-d", "--working-directory"}},
		{names: []string{"task", "go-task"},
			files: []string{"Taskfile.yml", "Taskfile.yaml", "taskfile.yml", "taskfile.yaml", "Taskfile.dist.yml",
				"Taskfile.dist.yaml"}, file: []string{"-t", "--taskfile"}, dir: []string{"-d", "--dir"}},
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
			"mise/config.toml", ".mise/config.toml", ".config/mise.toml", ".config/mise/config.toml", ".tool-versions"},
			dir: []string{"-C", "--cd"}},
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
			"compose.yml", "compose.override.yaml", "docker-compose.yml", "docker-compose.yaml", "docker-compose.override.yml"},
			file: []string{"-f", "--file"}},
		{names: []string{"awk", "gawk", "mawk", "sed"}, file: []string{"-f", "--file"}},
		{names: []string{"jq", "yq"}, file: []string{"-f", "--from-file", "-L"}},
		{names: []string{"nix", "nix-shell"}, files: []string{"flake.nix", "flake.lock", "shell.nix", "default.nix"},
			run: []string{"-c", "--command", "--run"}},
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
			file: []string{"-c", "--conf"}},
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

// builders are the tools of languages that are compiled: they build and test all parts of a project, each by its files.
func builders() []tool {
	return []tool{
		{names: []string{"go", "gotestsum", "ginkgo"}, files: []string{"go.mod", "go.work"}, below: true,
			file: []string{"-modfile", "-overlay", "-exec", "-toolexec", "-vettool"}, dir: []string{"-C"},
			paths: []string{"run"}},
		{names: []string{"cargo", "rustc"}, files: []string{"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config",
			".config/nextest.toml", "rust-toolchain.toml", "rust-toolchain", "clippy.toml", ".clippy.toml"}, below: true,
			file: []string{"--manifest-path", "--config"}, dir: []string{"-C"}},
		{names: []string{"gradle", "gradlew"}, below: true, dir: []string{"-p", "--project-dir"},
			file: []string{"-I", "--init-script", "-b", "--build-file", "-c", "--settings-file"},
			files: []string{"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts",
				"gradle.properties", "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar",
				"buildSrc/build.gradle", "buildSrc/build.gradle.kts", "buildSrc/src/**"}},
		{names: []string{"mvn", "mvnw"}, files: []string{"pom.xml", ".mvn/**"}, below: true,
			file: []string{"-f", "--file", "-s", "--settings"}},
		{names: []string{"java"}, file: []string{"-jar", "-cp", "-classpath", "--class-path"}, paths: []string{""}},
		{names: []string{"sbt"}, files: []string{"*.sbt", "project/**"}, below: true},
		{names: []string{"lein"}, files: []string{"project.clj", "profiles.clj"}},
		{names: []string{"clojure", "clj"}, files: []string{"deps.edn"}},
		{names: []string{"mix"}, files: []string{"mix.exs", "config/config.exs", "config/test.exs", ".credo.exs"},
			below: true},
		{names: []string{"dotnet", "msbuild"}, below: true,
			files: []string{"*.csproj", "*.fsproj", "*.vbproj", "*.sln", "*.slnx", "*.slnf", "*.props", "*.targets", "*.rsp",
				"*.runsettings", "global.json", "nuget.config", "NuGet.Config", "NuGet.config"}},
		{names: []string{"swift"}, files: []string{"Package.swift"}},
		{names: []string{"dart", "flutter"}, files: []string{"pubspec.yaml", "dart_test.yaml", "analysis_options.yaml"},
			below: true},
		{names: []string{"zig"}, files: []string{"build.zig", "build.zig.zon"}},
		{names: []string{"stack", "cabal"}, files: []string{"stack.yaml", "package.yaml", "cabal.project", "*.cabal"},
			below: true},
		{names: []string{"cmake", "ctest"}, files: []string{"CMakeLists.txt", "CMakePresets.json"}, below: true},
		{names: []string{"meson"}, files: []string{"meson.build"}, below: true},
		{names: []string{"scons"}, files: []string{"SConstruct"}, file: []string{"-f"}},
		{names: []string{"ninja"}, files: []string{"build.ninja"}, file: []string{"-f"}, dir: []string{"-C"}},
		{names: []string{"ant"}, files: []string{"build.xml"}, file: []string{"-f", "-file", "-buildfile"}},
		{names: []string{"bazel", "bazelisk"}, files: []string{".bazelrc", ".bazelversion", ".bazeliskrc", "MODULE.bazel",
			"WORKSPACE", "WORKSPACE.bazel", "BUILD", "BUILD.bazel", "*.bzl"}, below: true},
	}
}

// linters are the tools that judge sources and go by settings.
func linters() []tool {
	return []tool{
		{names: []string{"golangci-lint"}, below: true,
			files: append(named(".golangci", "yml", "yaml", "toml", "json"), "go.mod", "go.work"),
			file:  []string{"-c", "--config"}},
		{names: []string{"ruff"}, files: []string{"ruff.toml", ".ruff.toml", "pyproject.toml"}, below: true,
			file: []string{"--config"}},
		{names: []string{"mypy", "dmypy"}, files: []string{"mypy.ini", ".mypy.ini", "pyproject.toml", "setup.cfg"},
			file: []string{"--config-file"}},
		{names: []string{"pyright", "basedpyright"}, files: []string{"pyrightconfig.json", "pyproject.toml"},
			file: []string{"-p", "--project"}},
		{names: []string{"pylint"}, files: []string{".pylintrc", "pylintrc", "pyproject.toml", "setup.cfg"},
			file: []string{"--rcfile"}},
		{names: []string{"flake8"}, files: []string{".flake8", "setup.cfg", "tox.ini"}, file: []string{"--config"}},
		{names: []string{"black", "isort"}, files: []string{"pyproject.toml", ".isort.cfg", "setup.cfg"}, below: true,
			file: []string{"--config", "--settings"}},
		{names: []string{"coverage"}, files: []string{".coveragerc", "pyproject.toml", "setup.cfg", "tox.ini"},
			file: []string{"--rcfile"}, run: []string{"run"}, as: "python"},
		{names: []string{"rubocop"}, files: []string{".rubocop.yml"}, below: true, file: []string{"-c", "--config"}},
		{names: []string{"shellcheck"}, files: []string{".shellcheckrc", "shellcheckrc"}, below: true,
			file: []string{"--rcfile"}},
		{names: []string{"clang-tidy", "clang-format"}, files: []string{".clang-tidy", ".clang-format",
			".clang-format-ignore"}, below: true},
		{names: []string{"rustfmt"}, files: []string{"rustfmt.toml", ".rustfmt.toml"}, below: true},
		{names: []string{"staticcheck"}, files: []string{"staticcheck.conf", "go.mod", "go.work"}, below: true},
		{names: []string{"phpstan"}, files: []string{"phpstan.neon", "phpstan.neon.dist", "phpstan.dist.neon"},
			file: []string{"-c", "--configuration"}},
		{names: []string{"psalm"}, files: []string{"psalm.xml", "psalm.xml.dist"}, file: []string{"-c", "--config"}},
		{names: []string{"phpcs"}, files: []string{"phpcs.xml", ".phpcs.xml", "phpcs.xml.dist", ".phpcs.xml.dist"}},
		{names: []string{"luacheck"}, files: []string{".luacheckrc"}, file: []string{"--config"}},
		{names: []string{"yamllint"}, files: []string{".yamllint", ".yamllint.yaml", ".yamllint.yml"},
			file: []string{"-c", "--config-file"}},
	}
}

// webTools are those of JavaScript and TypeScript.
func webTools() []tool {
	babel := slices.Concat(scripts("babel.config"), named("babel.config", "json"), []string{".babelrc"},
		named(".babelrc", "js", "cjs", "json"))
	return []tool{
		{names: []string{"turbo"}, files: []string{"turbo.json", "turbo.jsonc", "package.json"}, below: true},
		{names: []string{"nx"}, files: []string{"nx.json", "project.json", "package.json"}, below: true},
		{names: []string{"lerna"}, files: []string{"lerna.json", "package.json"}, below: true},
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
		{names: []string{"eslint"}, files: slices.Concat([]string{"package.json", ".eslintrc", ".eslintignore"},
			scripts("eslint.config"), named(".eslintrc", "js", "cjs", "json", "yml", "yaml")), below: true,
			file: []string{"-c", "--config"}},
	}
}

// named returns the names that a tool's settings may have, by their format.
func named(base string, endings ...string) (out []string) {
	for _, e := range endings {
		out = append(out, base+"."+e)
	}
	return out
}

// scripts is named for settings that are JavaScript or TypeScript.
func scripts(base string) []string { return named(base, "js", "mjs", "cjs", "ts", "mts", "cts") }

func toolOf(name string) (tool, bool) {
	for _, t := range slices.Concat(tools(), pythonTools(), builders(), linters(), webTools()) {
		if slices.Contains(t.names, name) {
			return t, true
		}
	}
	return tool{}, false
}

// tool adds the files that a well-known tool goes by, and the command behind it.
func (s *starts) tool(t tool, args []string, depth int) {
	outer := slices.Clone(s.dirs)
	for i, a := range args {
		s.option(t, a, args[i+1:])
	}
	files := t.files
	if len(args) == 0 || slices.ContainsFunc(args, installs) {
		files = slices.Concat(files, t.locks)
	}
	for _, f := range files {
		if t.below && !slices.Contains(s.Below, f) {
			s.Below = append(s.Below, f)
		}
		s.file(f)
	}
	if len(args) > 0 && slices.Contains(t.run, "") {
		s.behind(t, args, depth)
		args = nil
	}
	for i, a := range args {
		switch {
		case slices.Contains(t.run, a):
			s.behind(t, args[i+1:], depth)
		case slices.Contains(t.paths, a):
			s.sources(args[i+1:])
		case i == 0 && slices.Contains(t.paths, "") && strings.ContainsAny(a, "/."+string(hole)):
			s.sources(args)
		default:
			continue
		}
		break
	}
	s.dirs = outer
}

// installs reports whether an argument has a package manager install what its lock file names; so does none for some.
func installs(arg string) bool {
	return slices.Contains([]string{"install", "i", "ci", "clean-install", "install-test", "it", "cit", "sync", "update"},
		arg)
}

// option adds what an option of a tool names.
func (s *starts) option(t tool, a string, rest []string) {
	option, value, joined := strings.Cut(a, "=")
	if !joined && len(rest) > 0 {
		value = rest[0]
	}
	if known := slices.Contains(t.dir, option) || slices.Contains(t.file, option); !known &&
		len(a) > 2 && a[0] == '-' && a[1] != '-' { // -Cdir
		if option = a[:2]; !joined {
			value = a[2:]
		}
	}
	switch {
	case value == "":
	case slices.Contains(t.dir, option):
		s.enter(value)
	case slices.Contains(t.file, option):
		s.file(value)
	}
}

// behind looks at the command that a tool starts.
func (s *starts) behind(t tool, args []string, depth int) {
	for _, at := range operands(args) {
		words := args[at:]
		if t.as != "" {
			if at > 0 && args[at-1] == "-m" {
				words = args[at-1:]
			}
			words = append([]string{t.as}, words...)
		}
		s.command(line{words: words}, depth+1)
	}
}

// sources adds the file or folder that a tool runs.
func (s *starts) sources(args []string) {
	for _, at := range operands(args) {
		switch a := args[at]; {
		case a == ".":
			s.unknown("go run . runs every file of the folder")
		case strings.ContainsAny(a, "/."+string(hole)):
			s.file(a)
			s.folder(a)
		}
	}
}

// operands returns where what follows options may begin: one behind an option may be its value.
func operands(args []string) (out []int) {
	for i, a := range args {
		if strings.HasPrefix(a, "-") {
			continue
		}
		if len(out) > 0 && strings.ContainsRune(a, hole) {
			break
		}
		if out = append(out, i); i == 0 || !strings.HasPrefix(args[i-1], "-") || strings.Contains(args[i-1], "=") {
			break
		}
	}
	return out
}
