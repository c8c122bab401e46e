// Package sandbox runs a program that sees the files that it is given and little else
// of the machine, as far as the kernel allows it, and says what it enforced.
//
// On Linux a keeper stands between this process and the program: this program again,
// started under a name that [Enter] knows. The keeper sets the sandbox up, starts the
// program, and when that ends, or when this process does, ends everything that the
// program started. There are three levels, of which the strongest that works is used:
//
//   - namespaces: an own user, mount, network, process, IPC and host name space. The
//     file system is made anew of the system's software, what the job names, read-only,
//     and the folders that it may write. There is no network, not even loopback.
//   - Landlock: the same files in the same places, under rules that the kernel checks.
//   - none: limits alone. Inputs are copied, so that a program which writes to its
//     input harms a copy.
//
// Where this process is root, the program runs as nobody, with the one capability that
// lets it read and write whatever it was given.
//
// Elsewhere the program is started as it is, on copies.
package sandbox
