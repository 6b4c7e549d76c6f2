package hook

import "time"

// LongestPause is how long a Stop hook may be asked to wait, at most, before it hands an
// entry over again whose check has not passed. It is a part of Policy.CheckTimeout.
const LongestPause = 5 * time.Minute
