// Package driverproc does one job of a toolchain driver in a supervised process that
// speaks mlpromote.driver/v1.
//
// The protocol: one JSON [Request] on standard input, followed by its end; one JSON [Response]
// in the file that the request names. Standard output and error are only logs. Exit status 0
// says that the response is valid and the job is done. Status 1 says that the response is valid
// and has the reason of the failure. Any other status is a crash. A driver reads the inputs,
// writes only below out_dir and lists every file that it left.
//
// [Do] is the parent's side. It lays out the inputs and starts the process in a sandbox with a
// clean environment, an empty working directory and limits on time, memory, processes and
// files. It checks everything in the response that it can check, and removes all files of a
// failed job. [Serve] is the child's side for drivers written in Go.
package driverproc
