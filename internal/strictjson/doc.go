// Package strictjson reads JSON that somebody else wrote and that something
// hangs on: signals, decisions, verdicts, answers.
//
// encoding/json is kind where kindness is a hole: of doubled keys the last
// counts, keys match whatever their case ({"decision":"fail","Decision":"pass"}
// is read as pass), broken UTF-8 and lone surrogates quietly become U+FFFD.
// Here each of these is refused, at every depth, as are NUL in a text, numbers
// that no float64 holds, nesting beyond [MaxDepth] and input beyond the
// caller's limit.
//
// Files are read while they are being written, so there are three answers, not
// two ([State]): what is [Partial] may still become [Whole]; what is [Bad] never
// will.
//
// Everything here is pure: bytes in, values out.
package strictjson
