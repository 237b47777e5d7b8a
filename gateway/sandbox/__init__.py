"""Scripts that strangers wrote, run in processes of their own: nothing of them is ever a value in the gateway's."""
