// Package sandbox runs a program that can access only given files and little else of the
// machine, as far as the kernel allows it. It reports the restrictions that were in effect.
//
// On Linux, a keeper process runs between this process and the program. It executes this binary
// again, under a name that [Enter] recognizes. The keeper sets up the sandbox and starts the
// program. When the program or this process ends, the keeper ends everything that the program
// started. There are three levels, of which the strongest that works is used:
//
//   - namespaces: new user, mount, network, process, IPC and host name namespaces. A new root file
//     system has the system software and the files of the job, both read-only, and the folders
//     that the program may write to. There is no network, not even loopback unless the job asks for it.
//   - Landlock: the same files at their usual paths, under rules that the kernel enforces.
//   - none: only limits. Inputs are copied, so that a program that changes its input changes a
//     copy.
//
// If this process is root, the program runs as user "nobody", with only the capability to read and
// write all files that it can see, or only to read them where no sandbox confines it. It has an empty session keyring. A
// control group bounds the memory and number of all its processes together. Where none can be made, it may have fewer processes.
//
// On other systems the program is started without a sandbox, on copies of its inputs.
package sandbox
