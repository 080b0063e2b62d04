"""Why a proof has ended, what was not tried, and the command lines with which the user goes on."""
