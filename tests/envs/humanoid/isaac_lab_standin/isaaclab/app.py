"""The application, without which nothing else can be imported."""

running = []


class AppLauncher:
    """Starts it."""

    def __init__(self, *, headless, device):
        assert headless, "there is no screen"
        running.append(device)
