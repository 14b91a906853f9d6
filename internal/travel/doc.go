// Package travel has the work of runs stored for the other machines of a journal, and brought to this
// one.
//
// Promises:
//
//   - No fact names a commit before a pack of it is stored: the event that makes the fact is held back
//     until then. While the servers do not answer, it waits.
//   - Work that another machine has stored comes whole, checked as strictly as what a launch has
//     committed, or not at all. A run whose work does not come is paused with the reason, and begins
//     nothing here until it has come.
//
// What is stored of a run: packs of its commits, each built on those before it, and a sheet. The sheet
// lists the packs and has the small files of the state folder about the run's attempts. Packs and
// sheets are stored under their digest; a name of each result and each move of a branch stands for the
// newest sheet since. A name that is read may stand for an older one, or for one of a machine that decides
// no more: a sheet counts once it has every result, and every move, that the journal names.
//
// Read sheet.go (what is stored), save.go, bring.go and world.go (when).
package travel
