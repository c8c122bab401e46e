package toolchain

// ScoreJob is one run of a program of the user that gives a score to each case.
type ScoreJob struct {
	Program Input
	// Cases and Outputs are files of safetensors with the same cases as rows, in the order of the cases:
	// inputs and labels, and the outputs for them.
	Cases, Outputs []Input
	Count          int // cases
}
