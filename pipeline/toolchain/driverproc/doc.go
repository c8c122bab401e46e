// Package driverproc does one job of a toolchain driver in a supervised process that
// speaks mlpromote.driver/v1.
//
// The protocol: one JSON [Request] on standard input, then its end; one JSON
// [Response] in the file that the request names; standard output and error are only
// logs. Exit status 0 says that the response is valid and the job done, 1 that the
// response is valid and says why it is not, anything else is a crash. A driver reads
// the inputs, writes below out_dir alone and lists every file that it left.
//
// [Do] is the parent's side: it lays the inputs out, starts the process in a sandbox
// with a clean environment, an empty working directory and bounds on time, memory,
// processes and files, believes nothing of the answer that it can check, and leaves
// nothing of a job that failed. [Serve] is the child's side for drivers written in Go.
package driverproc
