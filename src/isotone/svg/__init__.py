"""Small vector pictures as text, for pages that load nothing."""
