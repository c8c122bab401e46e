// Package endtoend tests the program mlpromote, as it is built, from outside: processes that
// are killed, disks that are full, models that are large, databases and buckets that go
// away, containers, crowds, pages that readers follow, and the clients that others wrote.
package endtoend
