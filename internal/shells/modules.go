package shells

import "strings"

// ModuleEnds returns the endings that a Python module's file can have. An extension's ending may also name its
// platform: x.cpython-313-x86_64-linux-gnu.so.
func ModuleEnds() [6]string {
	return [...]string{".py", ".pyc", ".so", "/__init__.py", "/__init__.pyc", "/__init__.so"}
}

// OwnModule reports whether a module belongs to Python's own library, or to tools that test and check, or to what these
// import. A file of that name beside a script replaces it.
func OwnModule(name string) bool {
	return !strings.Contains(name, " ") && strings.Contains(ownModules+toolModules, " "+name+" ")
}

// toolModules belong to pytest and its common plugins, coverage, linters, type checkers and runners, to libraries by
// which checks often read files, and to what their packages require.
const toolModules = " " +
	"_pytest _yaml allure allure_pytest annotated_types anyio argcomplete asgiref astroid attr attrs bandit " +
	"behave black blib2to3 build cachetools certifi cfgv chardet charset_normalizer click colorama colorlog " +
	"coverage cucumber_tag_expressions dependency_groups dill distlib django exceptiongroup execnet faker " +
	"filelock flake8 flaky freezegun hypothesis identify idna importlib_metadata iniconfig isort jinja2 " +
	"jsonschema jsonschema_specifications librt markdown_it markupsafe mccabe mdurl mypy mypy_extensions mypyc " +
	"nodeenv nose2 nox packaging parse parse_type pathspec pkg_resources platformdirs pluggy pre_commit py " +
	"pycodestyle pydantic pydantic_core pydocstyle pyflakes pygments pylint pyproject_api pyproject_hooks pyright " +
	"pytest pytest_asyncio pytest_benchmark pytest_cov pytest_django pytest_metadata pytest_mock pytest_randomly " +
	"pytest_rerunfailures pytest_timeout pytokens referencing requests responses rich robot rpds ruff setuptools " +
	"six snowballstemmer sortedcontainers sqlparse stevedore syrupy testtools toml tomli tomli_w tomlkit tox " +
	"twisted typing_extensions urllib3 virtualenv wheel xdist yaml zipp zope "

// ownModules are the modules of CPython 3.9 to 3.14 (sys.stdlib_module_names), without those that are built in
// everywhere or exist on one system only.
const ownModules = " " +
	"__future__ _ast_unparse _asyncio _bisect _blake2 _bootlocale _bz2 _codecs_cn _codecs_hk _codecs_iso2022 " +
	"_codecs_jp _codecs_kr _codecs_tw _collections_abc _colorize _compat_pickle _compression _contextvars _crypt " +
	"_csv _ctypes _curses _curses_panel _datetime _dbm _decimal _elementtree _gdbm _hashlib _heapq _hmac " +
	"_interpchannels _interpqueues _interpreters _json _lsprof _lzma _markupbase _md5 _multibytecodec " +
	"_multiprocessing _opcode _opcode_metadata _pickle _posixshmem _posixsubprocess _py_abc _py_warnings _pydecimal " +
	"_pyio _pylong _pyrepl _queue _random _remote_debugging _sha1 _sha2 _sha256 _sha3 _sha512 _sitebuiltins _socket " +
	"_sqlite3 _ssl _statistics _strptime _struct _sysconfig _threading_local _tkinter _types _typing _uuid " +
	"_weakrefset _zoneinfo _zstd abc aifc annotationlib argparse array ast asynchat asyncio asyncore audioop base64 " +
	"bdb binascii binhex bisect bz2 cProfile calendar cgi cgitb chunk cmath cmd code codecs codeop collections " +
	"colorsys compileall compression concurrent configparser contextlib contextvars copy copyreg crypt csv ctypes " +
	"curses dataclasses datetime dbm decimal difflib dis distutils doctest email encodings ensurepip enum fcntl " +
	"filecmp fileinput fnmatch formatter fractions ftplib functools genericpath getopt getpass gettext glob " +
	"graphlib grp gzip hashlib heapq hmac html http imaplib imghdr imp importlib inspect io ipaddress json keyword " +
	"lib2to3 linecache locale logging lzma mailbox mailcap math mimetypes mmap modulefinder multiprocessing netrc " +
	"nis nntplib ntpath nturl2path numbers opcode operator optparse os ossaudiodev parser pathlib pdb pickle " +
	"pickletools pipes pkgutil platform plistlib poplib posixpath pprint profile pstats pty py_compile pyclbr pydoc " +
	"pydoc_data pyexpat queue quopri random re readline reprlib resource rlcompleter runpy sched secrets select " +
	"selectors shelve shlex shutil signal site smtpd smtplib sndhdr socket socketserver spwd sqlite3 sre_compile " +
	"sre_constants sre_parse ssl stat statistics string stringprep struct subprocess sunau symbol symtable " +
	"sysconfig syslog tabnanny tarfile telnetlib tempfile termios textwrap threading timeit tkinter token tokenize " +
	"tomllib trace traceback tracemalloc tty turtle types typing unicodedata unittest urllib uu uuid venv warnings " +
	"wave weakref webbrowser wsgiref xdrlib xml xmlrpc zipapp zipfile zipimport zlib zoneinfo "
