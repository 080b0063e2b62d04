"""The parent's half of a held script: its process, the messages, and requests for trials."""
