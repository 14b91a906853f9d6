// Package checkouts keeps checkouts of commits for those who judge: the commands of criteria and gates, reviewers, hooks.
//
// # What is promised
//
// A checkout that At gives has the files of the commit and nothing else, as git writes them with no filter: what was
// there before, ignored or hidden, unreadable or too deep to be named, is gone. It has one user at a time. What a user
// wrote there is found before the next one gets it, by what no program can set back: each file's number and the time at
// which the system last changed anything of it. A file that is not as it was left is written anew, as a new file.
//
// Nothing is believed that a user could have written: what is known of a checkout lies beside it, in a folder that no
// launch sees. What was written before the machine started, or the disk was mounted, is not believed either.
//
// A few checkouts are kept, since an update costs little where much is the same. More users at once get more, which are
// removed after use.
package checkouts
