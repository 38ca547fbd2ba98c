"""What can go wrong around an environment."""


class EnvError(RuntimeError):
    """An engine that cannot be had or has failed: one sentence, no traceback needed."""
